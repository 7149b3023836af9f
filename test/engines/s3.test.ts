import { execFileSync, spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { writeKinetoRanks } from '../../src/record/ranks/test-ranks.js';
import { openSession } from '../../src/session/open.js';
import { inferscope, createSetup } from '../cli/run-cli.js';

const setup = createSetup();
vi.stubEnv('INFERSCOPE_HOME', setup.home);

/** The Python of npm run test:engines, with moto and httpfs. */
const python = process.env['INFERSCOPE_TEST_ENGINES_PYTHON'] ?? 'python3';
const findHttpfs =
  "import importlib.util as u; print(u.find_spec('duckdb_extension_httpfs').submodule_search_locations[0])";
const extension = join(
  execFileSync(python, ['-c', findHttpfs], { encoding: 'utf8' }).trim(),
  'extensions/v1.5.5/httpfs.duckdb_extension',
);

let server: ReturnType<typeof spawn>;
let endpoint = '';
/** Uploads an object, or without a body creates a bucket. */
const put = async (path: string, body: Buffer | null = null) => {
  const { ok, status } = await fetch(`${endpoint}/${path}`, { method: 'PUT', body });
  if (!ok) throw new Error(`PUT ${path}: ${status}`);
};

beforeAll(async () => {
  const portFinder = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => portFinder.once('listening', resolve));
  const { port } = portFinder.address() as { port: number };
  await new Promise((resolve) => portFinder.close(resolve));
  endpoint = `http://127.0.0.1:${port}`;
  server = spawn(python, ['-m', 'moto.server', '-H', '127.0.0.1', '-p', String(port)], { stdio: 'ignore' });
  await vi.waitFor(() => put('profiles'), { timeout: 60_000, interval: 200 });
});
afterAll(() => server.kill());

test('sql reads only the session in S3, in place, with the same results as locally', async () => {
  const traces = join(setup.scratch, 'traces');
  writeKinetoRanks(traces, { seed: 1, ranks: 2 });
  expect(inferscope(setup, ['import', traces, '--ranks', '--no-analyze', '--quiet']).status).toBe(0);
  const { folder, id } = await openSession('@last');
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  for (const { parentPath, name } of files) {
    const path = join(parentPath, name);
    await put(`profiles/team/${id}${path.slice(folder.length)}`, readFileSync(path));
  }
  await put('profiles/other/x.parquet', readFileSync(join(folder, 'session.json')));
  const env = {
    AWS_ENDPOINT_URL: endpoint,
    AWS_ACCESS_KEY_ID: 'key',
    AWS_SECRET_ACCESS_KEY: 'not-to-be-shown',
  };
  const url = `s3://profiles/team/${id}`;
  const sqlFromS3 = (query: string, options = ['--load-extension', extension], from = url) =>
    inferscope(setup, ['sql', '--from', from, ...options, query, '--json'], env);
  for (const query of [
    'SELECT rank, class, count(*) AS n, sum(dur_ns) AS d FROM kernels GROUP BY ALL ORDER BY ALL',
    'SELECT operation, count(*) AS n, sum(dur_ns) AS d FROM collectives GROUP BY ALL ORDER BY ALL',
    'SELECT operation, count(*) AS n, sum(shortest_ns) AS wire FROM collective_calls GROUP BY ALL ORDER BY ALL',
    'SELECT DISTINCT session_id FROM stages',
  ]) {
    const fromS3 = sqlFromS3(query);
    expect(fromS3.status, fromS3.stderr).toBe(0);
    const fromDisk = inferscope(setup, ['sql', id, query, '--json']);
    expect(JSON.parse(fromS3.stdout).data.rows).toEqual(JSON.parse(fromDisk.stdout).data.rows);
    expect(JSON.parse(fromS3.stdout).data.rows.length).toBeGreaterThan(0);
  }
  for (const query of [
    "SELECT * FROM read_parquet('s3://profiles/other/x.parquet')",
    "SELECT * FROM read_text('/etc/hostname')",
    'SELECT * FROM duckdb_secrets()',
  ]) {
    const refused = sqlFromS3(query);
    expect(refused.status, query).toBe(2);
    expect(refused.stdout + refused.stderr).not.toContain('not-to-be-shown');
  }
  expect(sqlFromS3('SELECT 1 AS one', ['--load-extension', 'nowhere.duckdb_extension']).stdout).toContain(
    'E_SQL_EXTENSION',
  );
  expect(sqlFromS3('SELECT 1 AS one', undefined, 's3://profiles/team/absent').stdout).toContain(
    'E_SESSION_NOT_FOUND',
  );
  const derivedTable = sqlFromS3('SELECT count(*) AS n FROM phase_stages');
  expect(derivedTable.status).toBe(2);
  expect(derivedTable.stdout).toContain('phase_stages: not available with --from');
  expect(sqlFromS3('SELECT 1 AS one', []).stdout).toContain('E_USAGE');
});
