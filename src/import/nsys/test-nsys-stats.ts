import { existsSync, readFileSync } from 'node:fs';

/** A report of `nsys stats --format csv`: the columns by name. Empty if nsys had nothing to report. */
export function nsysStats(folder: string, report: string): Record<string, string>[] {
  const path = `${folder}/out_${report}.csv`;
  if (!existsSync(path)) throw new Error(`no ${path}`);
  const [head, ...rows] = parseCsv(readFileSync(path, 'utf8'));
  return rows.map((row) => Object.fromEntries(head!.map((name, i) => [name, row[i] ?? ''])));
}

function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  for (const match of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\n]*))(,|\n|$)/g)) {
    const [, quoted, bare, end] = match;
    row.push(quoted?.replaceAll('""', '"') ?? bare!);
    if (end === ',') continue;
    if (row.length > 1) rows.push(row);
    row = [];
  }
  return rows;
}
