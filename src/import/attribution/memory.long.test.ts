import { expect, test } from 'vitest';
import { createTraceTables } from '../trace-tables.js';
import { attribute } from './attribute.js';
import { importWith } from './test-import.js';

/** Two slices of attribution (slices.ts), so that not all rows are in memory at a time. */
const kernels = 300_000;
const memoryMiB = 48;
/**
 * The workbench grants a statement a quarter more, and a quarter again, if needed. A join of all kernels and operators
 * would need 94 MiB and more.
 */
const maxMiB = memoryMiB * 1.25 ** 2;

test('kernels of unknown names in as many operators are attributed in bounded memory', async () => {
  let limit = 0;
  const { database } = await importWith(async ({ workbench }, context) => {
    for (const writer of Object.values(await createTraceTables(workbench))) writer.close();
    await workbench.createNames('trace_names', ['aten::mm', '_own_a', 'cpu_op']);
    const fill = (table: string, columns: string) =>
      workbench.run(
        `INSERT INTO ${table} BY NAME SELECT ${columns}, 7 AS pid, 0 AS rank, i AS op_id FROM range(${kernels}) AS numbers(i)`,
      );
    await fill('trace_ops', 'i * 10_000 AS start_ns, 5_000 AS dur_ns, 1 AS tid, 0 AS name, 2 AS op_type');
    await fill(
      'trace_kernels',
      `i * 10_000 + 2_000 AS start_ns, 1_000 AS dur_ns, 0 AS device, 1 AS context, 1 AS stream, i AS correlation,
       1 AS name, 1 AS short_name, 0 AS opaque_graph`,
    );
    // One thread, so that a statement's memory differs less between runs.
    await workbench.limit({ memory_bytes: memoryMiB * 2 ** 20, threads: 1 });
    const attributed = await attribute(workbench, context);
    const [setting] = await workbench.query<{ text: string }>(
      "SELECT current_setting('memory_limit') AS text",
    );
    limit = Number.parseFloat(setting!.text);
    return attributed;
  });
  expect(await database.query('SELECT class, count(*) AS n FROM kernels GROUP BY class')).toEqual([
    { class: 'gemm', n: kernels },
  ]);
  await database.close();
  expect(limit).toBeGreaterThanOrEqual(memoryMiB);
  expect(limit).toBeLessThanOrEqual(maxMiB);
});
