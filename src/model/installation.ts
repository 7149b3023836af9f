import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Folder of the installed package: the nearest package.json above this module, in dist/ as in src/. */
export function packageRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder);
  return folder;
}

/** Path of a built entry that is started as a process of its own, e.g. `sql-child`. */
export function childEntry(name: string): string {
  return join(packageRoot(), 'dist', `${name}.js`);
}
