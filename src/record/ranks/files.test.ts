import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testFolder } from '../../session/test-folder.js';
import { rankFiles, rankOfName } from './files.js';

test.each([
  ['trace_rank0003.json.gz', 3],
  ['rank-12.Apr_03_18_51_38.1102.pt.trace.json.gz', 12],
  ['1790000000-TP-7.trace.json.gz', 7],
  ['host7.report_rank_5.nsys-rep', 5],
  ['/runs/rank2/trace.json', 2],
  ['profile.procid11.sqlite', 11],
  ['/runs/mtp-3/trace.json', null],
  ['host_123.456.pt.trace.json', null],
])('%s is of rank %s', (name, rank) => {
  expect(rankOfName(name)).toBe(rank);
});

test('folders and patterns find the timelines in them; an nsys folder, or a report with its export, is one timeline', () => {
  const folder = testFolder();
  const put = (path: string) => {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), 'x');
  };
  for (const path of [
    'a/rank10.json',
    'a/rank2.json.gz',
    'a/notes.txt',
    'b/c/r.parquetdir/StringIds.parquet',
    'b/one.nsys-rep',
    'b/one.sqlite',
  ])
    put(path);
  put('.hidden/rank1.json');
  const relativeFiles = (...patterns: string[]) =>
    rankFiles(patterns.map((pattern) => join(folder, pattern))).map((path) => path.slice(folder.length + 1));
  const all = ['a/rank2.json.gz', 'a/rank10.json', 'b/c/r.parquetdir', 'b/one.sqlite'];
  expect(relativeFiles('.')).toEqual(all);
  expect(relativeFiles('**')).toEqual(all);
  expect(relativeFiles('a/*')).toEqual(all.slice(0, 2));
  expect(relativeFiles('a/rank?.json*', 'a/{rank10,rank11}.json')).toEqual(all.slice(0, 2));
  expect(relativeFiles('a/notes.txt')).toEqual(['a/notes.txt']);
  expect(relativeFiles('**/rank10.json', 'b/**/one.sqlite')).toEqual(['a/rank10.json', 'b/one.sqlite']);
  expect(relativeFiles('**/0.json', 'nothing/*')).toEqual([]);
});
