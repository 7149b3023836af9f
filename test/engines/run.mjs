// npm run test:engines: reads the Parquet tables of a session with Polars, DuckDB, ClickHouse (chDB) and Spark from PyPI, and with
// `sql --from` from a local S3 server (moto). Creates a virtual environment with the pinned versions of requirements.txt once (1.6 GB).
// Without python3, venv or PyPI the tests are skipped with a message.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '..', '..');
const requirements = join(here, 'requirements.txt');
const httpfs = 'duckdb-extension-httpfs==1.5.5';
const key = createHash('sha256').update(readFileSync(requirements)).update(httpfs).digest('hex').slice(0, 12);
const venv = join(root, 'node_modules', '.cache', `inferscope-engines-${key}`);
const python = join(venv, 'bin', 'python');
const whole = join(venv, 'whole');
try {
  if (!existsSync(whole)) {
    rmSync(venv, { recursive: true, force: true });
    process.stderr.write('Installing Polars, DuckDB and chDB for the test, once…\n');
    execFileSync('python3', ['-m', 'venv', venv], { stdio: 'inherit' });
    const install = [python, '-m', 'pip', 'install', '--quiet'];
    execFileSync(install[0], [...install.slice(1), '-r', requirements], { stdio: 'inherit' });
    // For the DuckDB in inferscope, which is not that of requirements.txt.
    execFileSync(install[0], [...install.slice(1), '--no-deps', httpfs], { stdio: 'inherit' });
    writeFileSync(whole, '');
  }
} catch (error) {
  process.stderr.write(
    `\n*** SKIPPED: the test of other engines needs Polars, DuckDB, chDB, Spark, httpfs and moto from PyPI (python3 with venv, network).\n*** ${error.message}\n*** What it covers is NOT tested in this run.\n\n`,
  );
  process.exit(process.env.INFERSCOPE_REQUIRE_ENGINES === '1' ? 1 : 0);
}
if (spawnSync('java', ['-version']).error)
  process.stderr.write(
    '\n*** SKIPPED: Spark needs a Java runtime (Debian: apt-get install default-jre-headless), and there is none.\n*** That Spark reads sessions is NOT tested in this run.\n\n',
  );
execFileSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: 'inherit' });
const tests = spawnSync('npx', ['vitest', 'run', '--project', 'engines'], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, INFERSCOPE_TEST_ENGINES_PYTHON: python },
  timeout: 10 * 60_000,
});
process.exitCode = tests.status ?? 1;
