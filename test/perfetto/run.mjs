// npm run test:perfetto: opens files of `inferscope export --format perfetto` in Perfetto's UI, which is served locally, with the Chromium from
// npm. Without python3, venv or PyPI the tests are skipped with a message.
import { execFileSync, spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { skipTests } from '../skip.mjs';
import { perfettoFolder } from './download.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
let ui;
try {
  ui = perfettoFolder();
} catch (error) {
  skipTests(
    "the tests of export --format perfetto need Perfetto's UI from PyPI (python3 with venv, network).",
    error.message,
    'INFERSCOPE_REQUIRE_PERFETTO',
  );
}
execFileSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: 'inherit' });
const tests = spawnSync('npx', ['vitest', 'run', '--project', 'perfetto'], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, INFERSCOPE_TEST_PERFETTO_UI: ui },
  timeout: 10 * 60_000,
});
process.exitCode = tests.status ?? 1;
