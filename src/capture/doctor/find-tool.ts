import { accessSync, constants, readdirSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { ToolFacts } from './facts.js';
import { runTool } from './run-tool.js';

/** Path of an executable file on PATH, or null. */
export function findOnPath(name: string, path = process.env['PATH'] ?? ''): string | null {
  for (const folder of path.split(delimiter)) {
    // An empty entry means the current folder to a shell; doctor runs nothing from there.
    if (!folder) continue;
    const candidate = join(folder, name);
    if (isExecutable(candidate)) return candidate;
  }
  return null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** Executables that match a pattern with `*` in folder names, newest version first. */
export function findExecutables(pattern: string): string[] {
  let paths = [''];
  for (const part of pattern.split('/').filter(Boolean)) {
    if (!part.includes('*')) {
      paths = paths.map((path) => `${path}/${part}`);
      continue;
    }
    const name = new RegExp(`^${part.replaceAll('.', '\\.').replaceAll('*', '.*')}$`);
    paths = paths.flatMap((path) =>
      entries(path)
        .filter((entry) => name.test(entry))
        .map((entry) => `${path}/${entry}`),
    );
  }
  const newestFirst = new Intl.Collator('en', { numeric: true });
  return paths.filter(isExecutable).sort((a, b) => newestFirst.compare(b, a));
}

function entries(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

interface ToolSearch {
  name: string;
  /** Where installers put it without changing PATH. */
  patterns: string[];
  versionArgs: string[];
  version: RegExp;
  timeoutMs: number;
}

/** Searches PATH, then the usual folders, and asks the tool for its version. */
export async function findTool(
  search: ToolSearch,
  path = process.env['PATH'] ?? '',
): Promise<ToolFacts | null> {
  const listed = findOnPath(search.name, path);
  const found = listed ?? search.patterns.flatMap(findExecutables)[0];
  if (!found) return null;
  const run = await runTool(found, search.versionArgs, { timeoutMs: search.timeoutMs });
  const version = search.version.exec(`${run.stdout}\n${run.stderr}`)?.[1] ?? null;
  return { path: found, onPath: listed !== null, version };
}
