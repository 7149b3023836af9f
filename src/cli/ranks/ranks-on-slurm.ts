import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  cancelJobs,
  partitionCores,
  queueText,
  submitAfter,
  submitArray,
  tasksForShort,
  whileQueued,
} from '../../capture/tools/slurm.js';
import { type ErrorCode, type ErrorParts, InferscopeError } from '../../model/errors.js';
import { shellWords } from '../../model/shell.js';
import type { RankTask } from '../../record/ranks/journal.js';
import { readPart } from '../../record/ranks/part.js';
import type { PartOrder } from './import-part.js';
import type { RanksOptions } from '../import-run.js';
import type { Progress } from '../progress.js';

/** Maximum delay until a file written by another host is visible. */
const maxFileDelayMs = 10_000;

/** The import that the merge job continues, and the file for its result. */
export interface MergeOrder {
  patterns: readonly string[];
  options: RanksOptions;
  result: string;
}

type MergeResult = { id: string } | { failed: { code: ErrorCode; parts: ErrorParts } };

/** Writes the result of the import; an internal error ends the job and is in its log. */
export async function writeMergeResult(result: string, merge: Promise<string>): Promise<void> {
  const mergeResult = await merge.then(
    (id): MergeResult => ({ id }),
    (error: unknown): MergeResult => {
      if (!(error instanceof InferscopeError)) throw error;
      return { failed: { code: error.code, parts: error.parts } };
    },
  );
  writeFileSync(result, JSON.stringify(mergeResult));
}

/**
 * Submits an array with one or several remaining files per task, and a job that merges them after all have ended; waits for both. The merge
 * job retries once what a task did not finish (killed, out of time). Ctrl-C cancels the submitted jobs; if this process is lost, the jobs continue and
 * save the session. All hosts must see the home, the files and this installation under the same paths.
 * @returns the session's id; null after an interrupt
 * @throws E_TOOL_MISSING, E_TOOL_FAILED, and the errors of the merge
 */
export async function importOnSlurm(
  tasks: readonly RankTask[],
  {
    work,
    patterns,
    options,
    signal,
    progress,
  }: {
    work: string;
    patterns: readonly string[];
    options: RanksOptions;
    signal: AbortSignal;
    progress: Progress;
  },
): Promise<string | null> {
  const folder = `${work}-slurm`;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const pending = tasks.filter(({ outcome }) => outcome === 'pending');
  const orders = pending.map(({ file, folder: partFolder }): PartOrder => ({
    file,
    folder: join(work, partFolder),
    keepRaw: options.raw,
  }));
  const { jobs, on: _, sbatch = '', sbatchMerge = '', ...rest } = options;
  const result = join(folder, 'result.json');
  const merge: MergeOrder = { patterns, options: { ...rest, resume: true, quiet: true }, result };
  const sbatchOptions = shellWords(sbatch) ?? [];
  const submitted: string[] = [];
  const child = { entry: 'rank-child', folder };
  if (orders.length > 0) {
    const cores = await partitionCores(sbatchOptions);
    const slots = cores === null ? (jobs ?? null) : Math.min(cores, jobs ?? Infinity);
    const array = await submitArray(
      { ...child, name: 'rank', orders, options: sbatchOptions },
      jobs ?? null,
      tasksForShort(orders.length, slots),
    );
    submitted.push(array.id);
  }
  const stop = () => cancelJobs(submitted);
  try {
    const mergeOptions = [...sbatchOptions, ...(shellWords(sbatchMerge) ?? [])];
    submitted.push(
      await submitAfter({ ...child, name: 'merge', orders: [merge], options: mergeOptions }, submitted),
    );
    progress.done('submitted', `jobs ${submitted.join(', ')}`);
    await whileQueued(submitted, signal, (queued) => {
      const ended = orders.filter(({ folder: partFolder }) => readPart(partFolder) !== null).length;
      progress.update(
        ended < orders.length ? 'importing ranks' : 'merging',
        `${ended} of ${orders.length} files · ${queueText(queued)}`,
      );
    });
  } catch (error) {
    await stop();
    throw error;
  }
  if (signal.aborted) {
    await stop();
    return null;
  }
  // A shared file system may show the file later than Slurm reports that the job has ended.
  for (let waited = 0; !existsSync(result) && waited < maxFileDelayMs; waited += 500) await sleep(500);
  if (!existsSync(result)) throw noMergeResult(submitted.at(-1)!, join(folder, 'merge.log'));
  const mergeResult = JSON.parse(readFileSync(result, 'utf8')) as MergeResult;
  if ('failed' in mergeResult) throw new InferscopeError(mergeResult.failed.code, mergeResult.failed.parts);
  rmSync(folder, { recursive: true, force: true });
  return mergeResult.id;
}

function noMergeResult(job: string, log: string): InferscopeError {
  const lastLine = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n').at(-1)! : '';
  return new InferscopeError('E_TOOL_FAILED', {
    what: `job ${job}, which merges the ranks, ended without a session`,
    why: lastLine === '' ? 'It wrote nothing: it was canceled or killed.' : `It wrote last: ${lastLine}`,
    fix: 'Repeat the command with --resume: ranks that are imported are kept. More memory: --sbatch-merge --mem=8G',
  });
}
