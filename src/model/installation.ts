import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Folder of the installed package: the nearest package.json above this module, in dist/ as in src/. */
export function packageRoot(): string {
  const own = dirname(fileURLToPath(import.meta.url));
  let folder = own;
  while (!existsSync(join(folder, 'package.json'))) {
    if (dirname(folder) === folder)
      throw new Error(`no package.json above ${own}: inferscope was moved out of its package`);
    folder = dirname(folder);
  }
  return folder;
}

/** Path of a built entry that is started as a process of its own, e.g. `sql-child`. */
export function childEntry(name: string): string {
  return join(packageRoot(), 'dist', `${name}.js`);
}
