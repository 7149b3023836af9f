import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { InferscopeError } from '../../model/errors.js';
import { childEntry } from '../../model/installation.js';
import { shellWord } from '../../model/shell.js';
import { failureLine, runTool } from '../doctor/run-tool.js';

/** Slurm's commands talk to its controller: one that does not answer is not waited for longer. */
const commandMs = 60_000;
/** Tasks of one array: Slurm's limit is 1001 unless a cluster sets another one (MaxArraySize). */
const mostTasks = 1000;
const pollMs = 2000;

/** Work that is submitted: an order is one JSON argument of a built entry of ours, which does it in a process of its own. */
interface Orders {
  orders: readonly unknown[];
  entry: string;
  /** Where script, orders and logs go: all hosts must see it, and this installation, under the same path. */
  folder: string;
  /** Name of the job, after `inferscope-`, and of its files. */
  name: string;
  /** Options of sbatch. */
  options: readonly string[];
}

/** A submitted array of tasks. */
export interface JobArray {
  id: string;
  /** The id of the task that does this order, as squeue prints it. */
  taskOf: (order: number) => string;
}

/**
 * Submits an array of tasks, an order each. Beyond the limit of an array, a task takes every n-th order from its own number on.
 * @param most tasks that run at the same time; null: as many as Slurm starts
 * @throws E_TOOL_MISSING, E_TOOL_FAILED
 */
export async function submitArray(work: Orders, most: number | null): Promise<JobArray> {
  const width = Math.min(work.orders.length, mostTasks);
  const limit = most === null ? '' : `%${most}`;
  const own = [
    `--array=0-${width - 1}${limit}`,
    `--output=${join(work.folder, [work.name, '%a.log'].join('-'))}`,
  ];
  const id = await submitOrders(work, width, own);
  return { id, taskOf: (order) => `${id}_${order % width}` };
}

/** Submits a job that does one order, when the jobs `after` have ended. @throws E_TOOL_MISSING, E_TOOL_FAILED */
export async function submitAfter(work: Orders, after: readonly string[]): Promise<string> {
  const waits = after.map((id) => `--dependency=afterany:${id}`);
  return submitOrders(work, 1, [...waits, `--output=${join(work.folder, work.name)}.log`]);
}

/** Orders may hold a user's command with its secrets: only the user reads them. */
async function submitOrders(
  { orders, entry, folder, name, options }: Orders,
  width: number,
  own: readonly string[],
): Promise<string> {
  const script = join(folder, `${name}.sh`);
  const list = `${script}.orders`;
  writeFileSync(list, orders.map((order) => `${JSON.stringify(order)}\n`).join(''), { mode: 0o600 });
  const run = `${shellWord(process.execPath)} ${shellWord(childEntry(entry))}`;
  const lines = [
    '#!/bin/bash',
    `for ((i = \${SLURM_ARRAY_TASK_ID:-0}; i < ${orders.length}; i += ${width})); do`,
    `  ${run} "$(sed -n "$((i + 1))p" ${shellWord(list)})"`,
    'done',
    '',
  ];
  writeFileSync(script, lines.join('\n'), { mode: 0o755 });
  return submitJob(script, [...options, `--job-name=inferscope-${name}`, ...own]);
}

/**
 * Submits a script.
 * @param options of sbatch
 * @returns the id of its job
 * @throws E_TOOL_MISSING, E_TOOL_FAILED
 */
async function submitJob(script: string, options: readonly string[]): Promise<string> {
  const run = await runTool('sbatch', ['--parsable', ...options, script], { timeoutMs: commandMs });
  if (run.notFound)
    throw new InferscopeError('E_TOOL_MISSING', {
      what: '--on slurm needs sbatch',
      why: 'sbatch was not found on PATH.',
      fix: 'Type the command on a login node of the cluster, or leave out --on slurm.',
    });
  const id = run.stdout.trim().split(';')[0]!;
  if (run.ok && id !== '') return id;
  throw new InferscopeError('E_TOOL_FAILED', {
    what: 'sbatch did not accept the job',
    why: `${failureLine(run)}.`.replace(/\.+$/, '.'),
    fix: `Give it the options that this cluster asks for: --sbatch '--partition=NAME --time=30'`,
  });
}

export interface QueuedJobs {
  /** Ids of jobs, and of the tasks of arrays, that run or wait. */
  ids: ReadonlySet<string>;
  running: number;
  /** Why the first of these waits, as squeue says it: Resources, Priority, …; null where none does. */
  reason: string | null;
}

/** What is left of these jobs; null where Slurm does not answer, which says nothing of them. */
export async function queuedJobs(ids: readonly string[]): Promise<QueuedJobs | null> {
  const run = await runTool(
    'squeue',
    ['--noheader', '--array', '--jobs', ids.join(','), '--format', '%i|%T|%r'],
    {
      timeoutMs: commandMs,
    },
  );
  // Jobs that Slurm has forgotten are no longer queued.
  if (!run.ok && !/invalid job id/i.test(run.stderr)) return null;
  const jobs = run.stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => line.split('|') as [id: string, state: string, reason: string]);
  const waits = jobs.filter(([, state]) => state === 'PENDING' || state === 'REQUEUED');
  return {
    ids: new Set(jobs.map(([id]) => id)),
    running: jobs.length - waits.length,
    reason: waits.find(([, , reason]) => reason !== 'None' && reason !== 'Dependency')?.[2] ?? null,
  };
}

/** Waits until these jobs have ended or `signal` aborts. @param see what is queued; null where Slurm does not answer */
export async function whileQueued(
  ids: readonly string[],
  signal: AbortSignal,
  see: (queued: QueuedJobs | null) => void,
): Promise<void> {
  while (!signal.aborted) {
    const queued = await queuedJobs(ids);
    if (queued?.ids.size === 0) return;
    see(queued);
    await sleep(pollMs, undefined, { signal }).catch(() => {});
  }
}

/** As shown in progress. */
export const queueWords = (queued: QueuedJobs | null): string =>
  queued === null
    ? 'Slurm does not answer'
    : `${queued.running} running${queued.reason === null ? '' : `, others wait: ${queued.reason}`}`;

/** Ends jobs, those of an array included; jobs that are gone are no error. */
export async function cancelJobs(ids: readonly string[]): Promise<void> {
  await runTool('scancel', [...ids], { timeoutMs: commandMs });
}
