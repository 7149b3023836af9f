// npm run test:engines: reads the Parquet tables of a session with Polars, DuckDB, ClickHouse (chDB) and Spark from PyPI, and with
// `sql --from` from a local S3 server (moto). Creates a virtual environment with the pinned versions of requirements.txt once (1.6 GB).
// Without python3, venv or PyPI the tests are skipped with a message.
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { pythonOfEnvironment } from '../python-environment.mjs';
import { skipTests } from '../skip.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '..', '..');
const requirements = join(here, 'requirements.txt');
// For the DuckDB in inferscope, which has another version than the one in requirements.txt.
const httpfs = 'duckdb-extension-httpfs==1.5.5';
let python;
try {
  python = pythonOfEnvironment('engines', {
    content: [readFileSync(requirements), httpfs],
    installs: [
      ['-r', requirements],
      ['--no-deps', httpfs],
    ],
    message: 'Installing Polars, DuckDB, chDB and Spark for the tests, once…',
  });
} catch (error) {
  skipTests(
    'the tests of other engines need Polars, DuckDB, chDB, Spark, httpfs and moto from PyPI (python3 with venv, network).',
    error.message,
    'INFERSCOPE_REQUIRE_ENGINES',
  );
}
if (spawnSync('java', ['-version']).error)
  process.stderr.write(
    '\n*** SKIPPED: Spark needs a Java runtime (Debian: apt-get install default-jre-headless).\n*** Reading sessions with Spark is NOT tested in this run.\n\n',
  );
execFileSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: 'inherit' });
const tests = spawnSync('npx', ['vitest', 'run', '--project', 'engines'], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, INFERSCOPE_TEST_ENGINES_PYTHON: python },
  timeout: 10 * 60_000,
});
process.exitCode = tests.status ?? 1;
