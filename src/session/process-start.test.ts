import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { startProcess } from '../model/process-start.js';
import { findParquetDamage } from './parquet-damage.js';
import { defaultSqlLimits, runSql } from './sql-run.js';
import { testFolder } from './test-folder.js';

const scratch = testFolder();

describe.each([
  ['the Parquet check', (entry: string) => findParquetDamage(['any.parquet'], entry)],
  ['sql', (entry: string) => runSql(entry, [], 'SELECT 1', defaultSqlLimits)],
])('%s', (_, run) => {
  test.each([
    ['no such file', null],
    ['a chunk of another build', "import './no-such-chunk.js';"],
  ])('E_PROCESS_START for a process that cannot start: %s', async (name, source) => {
    const entry = join(scratch, `${name}.mjs`);
    if (source !== null) writeFileSync(entry, source);
    await expect(run(entry)).rejects.toMatchObject({
      code: 'E_PROCESS_START',
      exitCode: 3,
      parts: {
        what: expect.stringContaining(entry),
        why: expect.stringContaining('Cannot find module'),
      },
    });
  });
});

test('a query that a signal ended counts as started', async () => {
  const entry = join(scratch, 'killed.mjs');
  writeFileSync(entry, "process.kill(process.pid, 'SIGKILL');");
  await expect(runSql(entry, [], 'SELECT 1', defaultSqlLimits)).rejects.toMatchObject({
    code: 'E_SQL_LIMIT',
  });
});

test('reports a program that the system does not start, as an exception or as an event', async () => {
  const failing = (code: string) => () => {
    throw Object.assign(new Error(`spawn ${code}`), { code });
  };
  const missing = startProcess('runs the query', 'any.js', () => spawn(join(scratch, 'no-node'), ['any.js']));
  await expect(missing).rejects.toMatchObject({ parts: { why: expect.stringContaining('ENOENT') } });
  for (const code of ['EAGAIN', 'ENOMEM'])
    await expect(startProcess('runs the query', 'any.js', failing(code))).rejects.toMatchObject({
      code: 'E_PROCESS_START',
      parts: { fix: expect.stringContaining('ulimit -u') },
    });
});
