import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve, sep } from 'node:path';

/** File names of timelines; files with other names are used only if named explicitly. */
const timelineName = /\.(?:json|json\.gz|nsys-rep|sqlite)$/;
const wildcard = /[*?[{]/;

/**
 * Files of ranks: each argument is a file, a folder (searched recursively), or a pattern with `*`, `?`, `**`, `[…]` and `{…,…}`. A folder
 * exported by nsys counts as one file; of a report and its export only the export is used.
 * @returns absolute paths in the order of their names, with numbers sorted by value
 */
export function rankFiles(patterns: readonly string[]): string[] {
  const files = new Set(patterns.flatMap((pattern) => filesOf(resolve(pattern))));
  for (const path of files) {
    const report = path.replace(/(?:\.sqlite|[._]parquetdir|[._]pqtdir)$/, '.nsys-rep');
    if (report !== path) files.delete(report);
  }
  return [...files].toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true }));
}

function filesOf(path: string): string[] {
  if (isCapture(path)) return [path];
  if (existsSync(path)) return filesBelow(path).filter((file) => isTimeline(file));
  if (!wildcard.test(path)) return [path];
  const parts = path.split(sep);
  const root =
    parts
      .slice(
        0,
        parts.findIndex((part) => wildcard.test(part)),
      )
      .join(sep) || sep;
  const pattern = new RegExp(`^${patternSource(path)}$`);
  return existsSync(root) ? filesBelow(root).filter((file) => pattern.test(file) && isTimeline(file)) : [];
}

/** Regular expression of a pattern: `**` matches any folders, `*`, `?` and [a-c] match within a name, {a,b} alternatives. */
function patternSource(pattern: string): string {
  return pattern.replaceAll(/\*\*\/?|[*?]|\{[^{}]*\}|[.+^$()|[\]\\{}]/g, (match) => {
    if (match === '**/') return '(?:.*/)?';
    if (match === '**') return '.*';
    if (match === '*') return '[^/]*';
    if (match === '?') return '[^/]';
    if (match.length > 1 && match.startsWith('{'))
      return `(?:${match.slice(1, -1).split(',').map(patternSource).join('|')})`;
    return match === '[' || match === ']' ? match : `\\${match}`;
  });
}

/** Files, and folders that are one capture. */
function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.name.startsWith('.')) return [];
    return entry.isDirectory() && !isCapture(path) ? filesBelow(path) : [path];
  });
}

function isCapture(path: string): boolean {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats?.isFile() === true || (stats?.isDirectory() === true && isNsysFolder(path));
}

const isNsysFolder = (path: string): boolean => existsSync(join(path, 'StringIds.parquet'));

const isTimeline = (path: string): boolean => timelineName.test(path) || isNsysFolder(path);

/** The rank in a file's name, else in the name of the nearest folder: rank3, rank-0003, trace_rank_3, TP-3, procid3; null without one. */
export function rankOfName(path: string): number | null {
  for (let folder = path; dirname(folder) !== folder; folder = dirname(folder)) {
    const match = [...basename(folder).matchAll(/(?:rank|procid|(?<![a-z])tp)[-_.=]?(\d{1,6})(?!\d)/gi)].at(
      -1,
    );
    if (match) return Number(match[1]);
  }
  return null;
}
