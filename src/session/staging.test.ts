import { DuckDBInstance } from '@duckdb/node-api';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testFolder } from './test-folder.js';
import { createStaging } from './staging.js';

test('spills rows that exceed the memory and writes all of them in order', async () => {
  const folder = testFolder();
  const staging = await createStaging({ folder, spillFolder: join(folder, 'spill') }, 24 * 2 ** 20);
  const rows = 600_000;
  // 600,000 × 8 staged columns of 8 bytes and a text: about twice the limit.
  for (let i = 0; i < rows; i++) {
    staging.sink.append('telemetry', {
      capture_id: 'c0',
      execution_id: 'e',
      host: `h${i % 3}`,
      pid: i,
      t_ns: i,
      scope: 'host',
      metric: 'rss_bytes',
      value: i / 3,
    });
  }
  expect(staging.rows('telemetry')).toBe(rows);
  expect(existsSync(join(folder, 'spill')) ? readdirSync(join(folder, 'spill')).length : 0).toBeGreaterThan(
    0,
  );
  expect(await staging.writeParquet()).toEqual([
    { table: 'telemetry', capture_id: 'c0', path: 'tables/telemetry/c0.parquet', rows },
  ]);
  await staging.close();
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  const [row] = (
    await connection.runAndReadAll(`
      SELECT count(*) AS n, sum(t_ns) AS total, bool_and(t_ns = position) AS in_order, count(DISTINCT host) AS hosts
      FROM (SELECT *, file_row_number AS position FROM read_parquet('${folder}/tables/telemetry/c0.parquet', file_row_number = true))`)
  ).getRowObjectsJS();
  expect(row).toEqual({ n: 600_000n, total: 179_999_700_000n, in_order: true, hosts: 3n });
});
