import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import packageJson from '../../package.json' with { type: 'json' };
import { shellWord } from './shell.js';

const dependencies: Readonly<Record<string, string>> = packageJson.dependencies;
const optionalDependencies: Readonly<Record<string, string>> = packageJson.peerDependencies;

/** Folder of the installed package: the nearest package.json above this module, in dist/ or src/. */
export function packageRoot(): string {
  const moduleFolder = dirname(fileURLToPath(import.meta.url));
  let folder = moduleFolder;
  while (!existsSync(join(folder, 'package.json'))) {
    if (dirname(folder) === folder)
      throw new Error(`no package.json above ${moduleFolder}: inferscope was moved out of its package`);
    folder = dirname(folder);
  }
  return folder;
}

/** Path of a built entry that runs as its own process, e.g. `sql-child`. */
export function childEntry(name: string): string {
  return join(packageRoot(), 'dist', `${name}.js`);
}

/**
 * The command that adds a missing package where this installation searches it: a checkout, a project's node_modules, the cache of npx, or
 * the global folder. Without install scripts: that of onnxruntime-node downloads CUDA libraries from outside the registry, which inferscope
 * does not use.
 */
export function installCommand(name: string): string {
  const root = packageRoot();
  const folder = dirname(dirname(root));
  if (basename(dirname(root)) !== 'node_modules')
    return `npm ci --prefix ${shellWord(root)} --ignore-scripts`;
  const spec = `${name}@${{ ...optionalDependencies, ...dependencies }[name] ?? 'latest'}`;
  const where = existsSync(join(folder, 'package.json')) ? `--prefix ${shellWord(folder)}` : '--global';
  return `npm install ${where} --ignore-scripts --save-exact ${spec}`;
}
