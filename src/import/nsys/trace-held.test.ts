import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { attribute } from '../attribution/attribute.js';
import { importedBy, type Imported } from '../attribution/test-import.js';
import { dropTraceTables } from '../trace-tables.js';
import { openParquetdir } from './parquetdir.js';
import { openSqlite } from './sqlite-file.js';
import { loadSqlite } from './sqlite-load.js';
import { createTrace } from './trace.js';
import { holdTrace } from './trace-held.js';

const fixtures = 'test/fixtures/nsys-2025.3.1-h200';
const captures = readdirSync(fixtures).filter((name) => /\.(sqlite|parquetdir)$/.test(name));

function imported(path: string, hold: boolean): Promise<Imported> {
  return importedBy(async ({ workbench }, context) => {
    const file = path.endsWith('.sqlite') ? openSqlite(path) : null;
    const tables = file ? await loadSqlite(file, workbench, { hold }) : await openParquetdir(path, workbench);
    // An offset, as a capture beside others has.
    const { issues, held } = hold
      ? await holdTrace(workbench, tables, 12_345)
      : { issues: await createTrace(workbench, tables, 12_345), held: null };
    const attributed = await attribute(workbench, context, held);
    await dropTraceTables(workbench);
    file?.close();
    const left = await workbench.query(
      "SELECT table_name FROM information_schema.tables WHERE table_name ~ '^(nsys|trace|attr)_'",
    );
    expect(left).toEqual([]);
    return { issues: [...issues, ...attributed.issues] };
  });
}

/** Every row of every table, in an order of their values. */
async function everything({ database, issues }: Imported): Promise<unknown> {
  const rows: Record<string, unknown> = { issues };
  for (const table of ['kernels', 'copies', 'api_calls', 'stages', 'gaps', 'ops'])
    rows[table] = await database.query(`SELECT * FROM ${table} ORDER BY ALL`);
  await database.close();
  return rows;
}

test.each(captures)(
  '%s: the same tables whether it is held in memory or attributed in tables',
  async (name) => {
    const path = `${fixtures}/${name}`;
    expect(await everything(await imported(path, true))).toEqual(
      await everything(await imported(path, false)),
    );
  },
);
