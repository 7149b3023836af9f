import { DuckDBInstance } from '@duckdb/node-api';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { columnParts } from '../import/attribution/in-memory/column-parts.js';
import { sharedFloats, sharedInts } from '../import/attribution/in-memory/shared-arrays.js';
import { inMemoryTables } from '../session/parquet/in-memory-tables.js';
import type { FileColumn } from '../session/parquet/file-column.js';
import { testFolder } from '../session/test-folder.js';

/** Three full row groups and a partial one. */
const rows = 3 * 122_880 + 77;

function calls() {
  const [start_ns, dur_ns, correlation] = [sharedFloats(rows), sharedFloats(rows), sharedFloats(rows)];
  const [shape, places] = [sharedInts(rows), sharedInts(rows)];
  for (let i = 0; i < rows; i++) {
    start_ns[i] = 1e15 + i * 1000;
    dur_ns[i] = i % 997;
    correlation[i] = i % 5 ? i : Number.NaN;
    shape[i] = i % 3;
    places[i] = i % 7 ? 4 * (1 + Math.floor(i / 100)) + (i % 3) : 0;
  }
  const floats = (...values: number[]) => Float64Array.from(values);
  const shapes = {
    pid: floats(7, 7, 7),
    tid: floats(1, 2, Number.NaN),
    name: floats(0, 1, 0),
    api: floats(2, 2, 2),
  };
  const events = { rows, start_ns, dur_ns, correlation, shape, bytes: null, shapes };
  return { calls: events, places, names: ['cudaLaunchKernel', 'cudaMemcpyAsync', 'runtime'] };
}

const columns: FileColumn[] = [
  { name: 'stage_id', type: 'BIGINT', texts: [] },
  { name: 'start_ns', type: 'BIGINT', texts: [] },
  { name: 'dur_ns', type: 'BIGINT', texts: [] },
  { name: 'correlation', type: 'BIGINT', texts: [] },
  { name: 'tid', type: 'BIGINT', texts: [], values: Float64Array.of(1, 2, Number.NaN) },
  {
    name: 'name',
    type: 'VARCHAR',
    texts: calls().names,
    from: 'tid',
    values: Float64Array.of(0, 1, 0),
  },
];

async function sumsOf(path: string): Promise<unknown[]> {
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  const result =
    await connection.run(`SELECT count(*), sum(start_ns), sum(dur_ns), sum(correlation), count(correlation),
      sum(stage_id), count(stage_id), sum(tid), count(tid), count(*) FILTER (name = 'cudaMemcpyAsync'),
      count(*) FILTER (file_row_number <> (start_ns - 1e15) / 1000)
    FROM read_parquet('${path}', file_row_number = true)`);
  return (await result.getRowsJS())[0]!.map(Number);
}

test('parts encoded by threads form the table in order', async () => {
  const input = calls();
  const tables = inMemoryTables(1);
  const path = join(testFolder(), 'a.parquet');
  const file = tables.open(path, rows);
  file.add(columns.slice(1), { name: 'apiCalls', input, columns: columnParts.apiCalls });
  file.add(columns.slice(0, 1), { name: 'callStages', input, columns: columnParts.callStages });
  file.close(columns);
  // Without encoding on this thread.
  expect(await file.written).toMatchObject({ rows });
  await tables.close();
  const sum = (valueAt: (row: number) => number) => {
    let [total, count] = [0, 0];
    for (let i = 0; i < rows; i++) {
      const value = valueAt(i);
      if (Number.isNaN(value)) continue;
      total += value;
      count++;
    }
    return [total, count];
  };
  const stage = sum((i) => (i % 7 ? 1 + Math.floor(i / 100) : Number.NaN));
  const tid = sum((i) => [1, 2, Number.NaN][i % 3]!);
  expect(await sumsOf(path)).toEqual([
    rows,
    Number(BigInt(rows) * 10n ** 15n + (1000n * BigInt(rows) * BigInt(rows - 1)) / 2n),
    sum((i) => i % 997)[0],
    ...sum((i) => (i % 5 ? i : Number.NaN)),
    ...stage,
    ...tid,
    sum((i) => Number(i % 3 === 1))[0],
    0,
  ]);
});

test('an unknown part is an error', async () => {
  const tables = inMemoryTables(1);
  const file = tables.open(join(testFolder(), 'b.parquet'), rows);
  file.add(columns, { name: 'nosuch', input: calls(), columns: columnParts.apiCalls });
  await expect(file.written).rejects.toThrow('unknown columns: nosuch');
  await tables.close();
});
