import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { captures, writeChangedKineto, writeChangedSqlite, listFiles } from './capture-files.js';
import { environmentOf, inferscope, createSetup, startCli } from './run-cli.js';

const setup = createSetup();

/** Secrets recognized by their format, by the name of their variable, and by their option. */
const planted = {
  shaped: 'hf_PlantedPlantedPlantedPlanted',
  variable: 'planted-value-0f3c9a',
  option: 'planted-option-77ab21',
};
const secrets = Object.values(planted);

/** SQL that adds the secrets to a raw report: in capture options, in the device environment, in a text with NUL separators, and in names of ranges. */
const plantSql = `
  INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:ENVIRONMENT_VARIABLE', 'MY_TOKEN="${planted.variable}"'),
    ('PROCESS_0:ENVIRONMENT_VARIABLE', 'HF_TOKEN="${planted.shaped}"'),
    ('PROCESS_0:ARGUMENT_90', '--api-key'), ('PROCESS_0:ARGUMENT_91', '${planted.option}'),
    ('PROCESS_0:ARGUMENT_92', '${planted.variable}');
  INSERT INTO TARGET_INFO_SYSTEM_ENV (globalVid, devStateName, name, nameEnum, value)
    VALUES (0, 'Local (CLI)', 'DeviceEnvironment', 610, 'SHELL=/bin/sh;MY_TOKEN=${planted.variable};HF_TOKEN=${planted.shaped}');
  INSERT INTO StringIds VALUES (900000, 'A=1' || char(0) || 'MY_TOKEN=${planted.variable}' || char(0) || 'X=2');
  UPDATE NVTX_EVENTS SET textId = NULL, text = 'decode ${planted.shaped} ${planted.variable} --token=${planted.option}'
    WHERE rowid IN (SELECT rowid FROM NVTX_EVENTS WHERE eventType = 59 LIMIT 3);`;

/** Folders with raw files of profilers, which are saved unchanged and not exported. */
const rawFolders = /\/artifacts\/[^/]*(nsys|torch|kineto|ncu|cublas)[^/]*\//;
const isRedacted = (path: string) =>
  !rawFolders.test(path) || /\/(stdout|stderr)\.log$|record.*\.jsonl$/.test(path);

/** The secrets in a file, which may be compressed with gzip. */
function findSecrets(content: Buffer): string[] {
  const text = content[0] === 0x1f && content[1] === 0x8b ? gunzipSync(content) : content;
  return secrets.filter((secret) => text.includes(secret));
}

/**
 * Expects no secret in what commands print about a session, in its tables, files and exports.
 * @param formats of exports: `all`, or only `csv` to save time
 */
function expectNoSecrets(
  session: string,
  { env = {}, formats = 'all' }: { env?: NodeJS.ProcessEnv; formats?: 'all' | 'csv' } = {},
): void {
  const run = (...args: string[]) => {
    const { status, stdout, stderr } = inferscope(setup, args, env);
    expect(status, `${args.join(' ')}: ${stderr}`).toBe(0);
    expect([args, findSecrets(Buffer.from(stdout + stderr))]).toEqual([args, []]);
    return stdout;
  };
  const { data } = JSON.parse(run('session', 'show', session, '--json')) as {
    data: { folder: string; manifest: { tables: Record<string, unknown> } };
  };
  run('session', 'show', session);
  run('session', 'list', '--json');
  const tables = Object.keys(data.manifest.tables);
  if (tables.includes('kernels')) run('report', '--session', session);
  // Rows of two tables as printed; all rows of all tables are searched below.
  for (const table of tables.filter((name) => name === 'kernels' || name === 'stages'))
    run('sql', '--session', session, '--json', `SELECT * FROM ${table} LIMIT 5000`);
  // Parquet is compressed, so DuckDB searches every row. The query contains the secrets reversed, so that it does not contain them itself.
  const conditions = secrets.map(
    (secret) => `contains(CAST(t AS VARCHAR), reverse('${[...secret].reverse().join('')}'))`,
  );
  const counts = tables.map(
    (table) => `SELECT '${table}', count(*) FROM ${table} t WHERE ${conditions.join(' OR ')}`,
  );
  const rowCounts = run('sql', '--session', session, '--json', counts.join(' UNION ALL '));
  expect(JSON.parse(rowCounts).data.rows.filter(([, n]: [string, number]) => n > 0)).toEqual([]);
  const out = join(setup.scratch, `exports-${session}`);
  mkdirSync(out);
  run('export', '-s', session, '--format', 'csv', '-o', join(out, 'csv'));
  if (formats === 'all') {
    run('export', '-s', session, '--format', 'parquet', '-o', join(out, 'parquet'));
    run('export', '-s', session, '--format', 'openmetrics', '-o', join(out, 'metrics.txt'));
  }
  if (formats === 'all' && tables.includes('kernels')) {
    run('export', '-s', session, '--format', 'chrome-trace', '-o', join(out, 'trace.json'));
    run('export', '-s', session, '--format', 'speedscope', '-o', join(out, 'speedscope.json'));
  }
  const archive = join(out, 'archive');
  mkdirSync(archive);
  run('session', 'export', session, '-o', join(out, 'all.tar.gz'), '--derived');
  const untar = spawnSync('tar', ['-xzf', join(out, 'all.tar.gz'), '-C', archive]);
  expect(untar.status).toBe(0);
  rmSync(join(out, 'all.tar.gz'));
  const files = [...listFiles(out), ...listFiles(data.folder).filter(isRedacted)];
  expect(files.length).toBeGreaterThan(15);
  expect(files.filter((path) => findSecrets(readFileSync(path)).length > 0)).toEqual([]);
}

test('import of nsys SQLite with secrets in its environment, range names and command line', () => {
  const path = writeChangedSqlite(join(setup.scratch, 'in'), 'secret.sqlite', plantSql);
  expect(findSecrets(readFileSync(path))).toEqual(secrets);
  const result = inferscope(setup, ['import', path, '--name', 'nsys']);
  expect(result.status, result.stderr).toBe(0);
  expect(findSecrets(Buffer.from(result.stdout + result.stderr))).toEqual([]);
  expectNoSecrets('nsys');
  const { stdout } = inferscope(setup, ['session', 'show', 'nsys', '--json']);
  expect(JSON.parse(stdout).data.manifest.executions[0].command.slice(-3)).toEqual([
    '--api-key',
    '***',
    '***',
  ]);
  // The raw report still contains the secrets, and exporting it gives a warning.
  const raw = inferscope(setup, [
    'session',
    'export',
    'nsys',
    '--raw',
    '-o',
    join(setup.scratch, 'raw.tar.gz'),
  ]);
  expect(raw.stderr).toContain('warning:');
  expect(raw.stderr).toContain('secret.sqlite');
});

test('import of an nsys parquet folder with secrets', async () => {
  const folder = join(setup.scratch, 'in', 'secret.parquetdir');
  cpSync(captures.parquetdir, folder, { recursive: true });
  const { DuckDBInstance } = await import('@duckdb/node-api');
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  const rewrite = async (table: string, select: string) => {
    const file = join(folder, `${table}.parquet`);
    await connection.run(`CREATE OR REPLACE TABLE t AS SELECT * FROM read_parquet('${file}')`);
    await connection.run(`COPY (${select}) TO '${file}' (FORMAT parquet)`);
  };
  await rewrite(
    'META_DATA_CAPTURE',
    `SELECT * FROM t UNION ALL BY NAME SELECT 'PROCESS_0:ENVIRONMENT_VARIABLE' AS name, 'MY_TOKEN="${planted.variable}"' AS value`,
  );
  await rewrite(
    'StringIds',
    `SELECT id, CASE WHEN value IN ('decode', 'prefill', 'sampling') OR value LIKE 'inferscope:%' THEN value || ' ${planted.shaped} ${planted.variable}' ELSE value END AS value FROM t`,
  );
  await rewrite(
    'NVTX_EVENTS',
    `SELECT * REPLACE (CASE WHEN text IS NULL THEN text ELSE text || ' ${planted.variable} ${planted.shaped}' END AS text) FROM t`,
  );
  connection.closeSync();
  const result = inferscope(setup, ['import', folder, '--name', 'parquet']);
  expect(result.status, result.stderr).toBe(0);
  expect(findSecrets(Buffer.from(result.stdout + result.stderr))).toEqual([]);
  expectNoSecrets('parquet', { formats: 'csv' });
});

test('import of a Kineto trace with secrets, one of which is in the environment of the import', () => {
  const path = writeChangedKineto(join(setup.scratch, 'in'), 'secret.json.gz', ({ traceEvents }) => {
    const named = traceEvents.filter(({ cat }) => cat === 'user_annotation' || cat === 'cpu_op');
    named.slice(0, 400).forEach((event, i) => {
      if (i % 3 === 0) event.name += ` ${planted.variable} token=${planted.option} ${planted.shaped}`;
    });
  });
  const env = { MY_TOKEN: planted.variable };
  const result = inferscope(setup, ['import', path, '--name', 'kineto'], env);
  expect(result.status, result.stderr).toBe(0);
  expect(findSecrets(Buffer.from(result.stdout + result.stderr))).toEqual([]);
  expectNoSecrets('kineto', { env, formats: 'csv' });
});

test('run with secrets in environment, command line, output, record and errors', () => {
  const record = {
    v: 1,
    type: 'stage',
    pid: 1,
    rank: 0,
    t_ns: 5,
    dur_ns: 5,
    kind: 'decode',
    note: `key ${planted.shaped}`,
  };
  const program = join(setup.scratch, 'program.mjs');
  writeFileSync(
    program,
    `import { appendFileSync } from 'node:fs';
     console.log('hello', process.env.MY_TOKEN, process.argv.slice(2).join(' '));
     console.error(process.env.HF_TOKEN);
     appendFileSync(process.env.INFERSCOPE_RECORD, JSON.stringify(${JSON.stringify(record)}) + '\\n');
     if (process.argv.includes('--fail')) throw new Error('refused: ' + process.env.MY_TOKEN);`,
  );
  const env = { MY_TOKEN: planted.variable, HF_TOKEN: planted.shaped };
  const command = [
    process.execPath,
    program,
    '--api-key',
    planted.option,
    `--url=https://u:${planted.option}@host/`,
  ];
  const result = inferscope(setup, ['run', '--evaluator', 'none', '--name', 'ran', '--', ...command], env);
  expect(result.status, result.stderr).toBe(0);
  // The program's own output is shown unchanged, but not saved.
  expect(result.stdout).toContain(planted.variable);
  expectNoSecrets('ran', { env });
  const failed = inferscope(
    setup,
    ['run', '--evaluator', 'none', '--json', '--name', 'failed', '--', ...command, '--fail'],
    env,
  );
  expect(failed.status).toBe(4);
  const document = JSON.parse(failed.stdout.slice(failed.stdout.indexOf('{'))) as { data: unknown };
  expect(findSecrets(Buffer.from(JSON.stringify(document)))).toEqual([]);
  expectNoSecrets('failed', { env, formats: 'csv' });
});

test('errors quote files and arguments without secrets', async () => {
  const path = join(setup.scratch, 'in', 'dotenv.json');
  writeFileSync(path, `HF_TOKEN=${planted.shaped}\n`);
  for (const args of [
    ['import', path],
    ['import', '--json', path],
    ['run', `--api-key=${planted.option}`, '--', 'true'],
    ['session', 'show', planted.shaped],
  ]) {
    const { status, stdout, stderr } = inferscope(setup, args);
    expect(status).toBeGreaterThan(0);
    expect([args[0], findSecrets(Buffer.from(stdout + stderr))]).toEqual([args[0], []]);
  }
  expect(environmentOf(setup)['MY_TOKEN']).toBeUndefined();
  const { exit } = startCli(setup, ['session', 'list']);
  expect((await exit).status).toBe(0);
});
