import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { cancelJobs, queuedJobs, submitJob } from '../../capture/tools/slurm.js';
import { type ErrorCode, type ErrorParts, InferscopeError } from '../../model/errors.js';
import { childEntry } from '../../model/installation.js';
import { shellWord, shellWords } from '../../model/shell.js';
import type { RankTask } from '../../record/ranks/journal.js';
import { readPart } from '../../record/ranks/part.js';
import type { PartOrder } from './import-part.js';
import type { RanksOptions } from '../import-run.js';
import type { Progress } from '../progress.js';

/** Tasks of one array: Slurm's limit is 1001 unless a cluster sets another one (MaxArraySize). */
const mostTasks = 1000;
const pollMs = 2000;
/** How late a file of another host may be seen. */
const lateMs = 10_000;

/** The import that the merge job goes on with, and where it notes the result. */
export interface MergeOrder {
  patterns: readonly string[];
  options: RanksOptions;
  result: string;
}

type MergeResult = { id: string } | { failed: { code: ErrorCode; parts: ErrorParts } };

/** Notes what the import came to; an error that is a fault of ours ends the job and is in its log. */
export async function noteMerge(result: string, made: Promise<string>): Promise<void> {
  const noted = await made.then(
    (id): MergeResult => ({ id }),
    (error: unknown): MergeResult => {
      if (!(error instanceof InferscopeError)) throw error;
      return { failed: { code: error.code, parts: error.parts } };
    },
  );
  writeFileSync(result, JSON.stringify(noted));
}

/**
 * Submits an array with a task for each file that is left and a job that merges when all have ended; waits for both. What a
 * task did not get done (killed, out of time), the merge job tries once more. Ctrl-C cancels what was submitted; when this
 * process is lost, the jobs go on and save the session. All hosts must see the home, the files and this installation under the same paths.
 * @returns the session's id; null where it was interrupted
 * @throws E_TOOL_MISSING, E_TOOL_FAILED, and what the merge throws
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
  const left = tasks.filter(({ outcome }) => outcome === 'pending');
  const orders = left.map(({ file, folder: own }): PartOrder => ({
    file,
    folder: join(work, own),
    keepRaw: options.raw,
  }));
  const { jobs, on: _, sbatch = '', sbatchMerge = '', ...rest } = options;
  const result = join(folder, 'result.json');
  const merge: MergeOrder = { patterns, options: { ...rest, resume: true, quiet: true }, result };
  const more = shellWords(sbatch) ?? [];
  const array = Math.min(orders.length, mostTasks);
  const submitted: string[] = [];
  if (array > 0) {
    const limit = jobs === undefined ? '' : `%${jobs}`;
    const names = ['--job-name=inferscope-rank', `--output=${join(folder, 'rank-%a.log')}`];
    const script = writeScript(join(folder, 'ranks.sh'), orders, array);
    submitted.push(await submitJob(script, [...more, ...names, `--array=0-${array - 1}${limit}`]));
  }
  const stop = () => cancelJobs(submitted);
  try {
    const after = submitted.map((id) => `--dependency=afterany:${id}`);
    const names = ['--job-name=inferscope-merge', `--output=${join(folder, 'merge.log')}`];
    const script = writeScript(join(folder, 'merge.sh'), [merge], 1);
    submitted.push(
      await submitJob(script, [...more, ...(shellWords(sbatchMerge) ?? []), ...names, ...after]),
    );
    progress.done('submitted', `jobs ${submitted.join(', ')}`);
    await waitFor(submitted, { orders, signal, progress });
  } catch (error) {
    await stop();
    throw error;
  }
  if (signal.aborted) {
    await stop();
    return null;
  }
  // A shared file system may show it later than Slurm says that the job has ended.
  for (let waited = 0; !existsSync(result) && waited < lateMs; waited += 500) await sleep(500);
  if (!existsSync(result)) throw withoutResult(submitted.at(-1)!, join(folder, 'merge.log'));
  const noted = JSON.parse(readFileSync(result, 'utf8')) as MergeResult;
  if ('failed' in noted) throw new InferscopeError(noted.failed.code, noted.failed.parts);
  rmSync(folder, { recursive: true, force: true });
  return noted.id;
}

/** A task takes every `width`-th order, from its own number on. */
function writeScript(path: string, orders: readonly (PartOrder | MergeOrder)[], width: number): string {
  const list = `${path}.orders`;
  writeFileSync(list, orders.map((order) => `${JSON.stringify(order)}\n`).join(''));
  const run = `${shellWord(process.execPath)} ${shellWord(childEntry('rank-child'))}`;
  const lines = [
    '#!/bin/bash',
    `for ((i = \${SLURM_ARRAY_TASK_ID:-0}; i < ${orders.length}; i += ${width})); do`,
    `  ${run} "$(sed -n "$((i + 1))p" ${shellWord(list)})"`,
    'done',
    '',
  ];
  writeFileSync(path, lines.join('\n'), { mode: 0o755 });
  return path;
}

async function waitFor(
  ids: readonly string[],
  { orders, signal, progress }: { orders: readonly PartOrder[]; signal: AbortSignal; progress: Progress },
): Promise<void> {
  while (!signal.aborted) {
    const queued = await queuedJobs(ids);
    if (queued !== null && queued.running + queued.waiting === 0) return;
    const ended = orders.filter(({ folder }) => readPart(folder) !== null).length;
    const state =
      queued === null
        ? 'Slurm does not answer'
        : `${queued.running} running${queued.reason === null ? '' : `, others wait: ${queued.reason}`}`;
    progress.update(
      ended < orders.length ? 'importing ranks' : 'merging',
      `${ended} of ${orders.length} files · ${state}`,
    );
    await sleep(pollMs, undefined, { signal }).catch(() => {});
  }
}

function withoutResult(job: string, log: string): InferscopeError {
  const said = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n').at(-1)! : '';
  return new InferscopeError('E_TOOL_FAILED', {
    what: `job ${job}, which merges the ranks, ended without a session`,
    why: said === '' ? 'It wrote nothing: it was cancelled or killed.' : `It wrote last: ${said}`,
    fix: 'Repeat the command with --resume: ranks that are imported are kept. More memory: --sbatch-merge --mem=8G',
  });
}
