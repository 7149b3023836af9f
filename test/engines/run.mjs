// npm run test:engines: reads the Parquet tables of a session with Polars, DuckDB, ClickHouse (chDB) and Spark from PyPI, and with
// `sql --from` from a local S3 server (moto). Creates a virtual environment with the pinned versions of requirements.txt once (1.6 GB).
// Without python3, venv or PyPI the tests are skipped with a message.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { skipTests } from '../skip.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '..', '..');
const requirements = join(here, 'requirements.txt');
const httpfs = 'duckdb-extension-httpfs==1.5.5';
const key = createHash('sha256').update(readFileSync(requirements)).update(httpfs).digest('hex').slice(0, 12);
const venv = join(root, 'node_modules', '.cache', `inferscope-engines-${key}`);
const python = join(venv, 'bin', 'python');
/** Created when everything is installed. */
const completeMark = join(venv, 'complete');
try {
  if (!existsSync(completeMark)) {
    rmSync(venv, { recursive: true, force: true });
    process.stderr.write('Installing Polars, DuckDB, chDB and Spark for the tests, once…\n');
    execFileSync('python3', ['-m', 'venv', venv], { stdio: 'inherit' });
    const install = [python, '-m', 'pip', 'install', '--quiet'];
    execFileSync(install[0], [...install.slice(1), '-r', requirements], { stdio: 'inherit' });
    // For the DuckDB in inferscope, which has another version than the one in requirements.txt.
    execFileSync(install[0], [...install.slice(1), '--no-deps', httpfs], { stdio: 'inherit' });
    writeFileSync(completeMark, '');
  }
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
