import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const cache = fileURLToPath(new URL('../node_modules/.cache/', import.meta.url));

/**
 * Creates a virtual environment in node_modules/.cache if there is none for this content, and returns the path of its Python. Throws without
 * python3, venv or PyPI.
 * @param name part of the folder's name
 * @param options.content texts that determine what is installed
 * @param options.installs arguments of `pip install`, one list per call
 * @param options.message printed before the installation
 */
export function pythonOfEnvironment(name, { content, installs, message }) {
  const hash = createHash('sha256');
  for (const text of content) hash.update(text);
  const folder = join(cache, `inferscope-${name}-${hash.digest('hex').slice(0, 12)}`);
  const python = join(folder, 'bin', 'python');
  // Created when everything is installed.
  const completeMark = join(folder, 'complete');
  if (existsSync(completeMark)) return python;
  rmSync(folder, { recursive: true, force: true });
  process.stderr.write(`${message}\n`);
  execFileSync('python3', ['-m', 'venv', folder], { stdio: 'inherit' });
  for (const install of installs)
    execFileSync(python, ['-m', 'pip', 'install', '--quiet', ...install], { stdio: 'inherit' });
  writeFileSync(completeMark, '');
  return python;
}
