import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { InferscopeError } from '../../model/errors.js';
import { shellCommand } from '../../model/shell.js';

/** Files of AIPerf 0.13 in the artifact folder of one run: its requests and their summary. */
const names = ['profile_export.jsonl', 'profile_export_aiperf.json'];

/** If all requests failed there is no summary. */
const filesIn = (folder: string): string[] =>
  names.map((name) => join(folder, name)).filter((path) => existsSync(path));

/**
 * Files of one run in an artifact folder of AIPerf, or in a folder with one such folder (its default `artifacts/`);
 * empty for any other folder.
 * @throws E_USAGE if the folder has several runs
 */
export function aiperfFiles(folder: string): string[] {
  const runFiles = filesIn(folder);
  if (runFiles.length > 0) return runFiles;
  const runs = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(folder, entry.name))
    .filter((path) => filesIn(path).length > 0)
    .toSorted((a, b) => a.localeCompare(b, 'en'));
  if (runs.length > 1)
    throw new InferscopeError('E_USAGE', {
      what: `${folder} contains ${runs.length} AIPerf runs`,
      why: `Each run becomes one session: ${runs.map((path) => basename(path)).join(', ')}.`,
      fix: runs.map((path) => shellCommand(['inferscope', 'import', path])).join(' && '),
    });
  return runs[0] === undefined ? [] : filesIn(runs[0]);
}

/** A file's name; AIPerf's files have the same name in every run, so they are named after their folder. */
export const captureName = (path: string): string =>
  names.includes(basename(path)) ? basename(dirname(path)) : basename(path);
