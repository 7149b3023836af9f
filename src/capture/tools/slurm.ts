import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { InferscopeError } from '../../model/errors.js';
import { childEntry } from '../../model/installation.js';
import { shellWord } from '../../model/shell.js';
import { failureLine, runTool } from '../doctor/run-tool.js';

/** Time limit of Slurm's commands, which wait for its controller. */
const commandMs = 60_000;
/** Maximum tasks of one array: Slurm's default limit is 1001 (MaxArraySize). */
const maxTasks = 1000;
/** Tasks of short orders for each that can run at a time. */
const tasksPerSlot = 4;
/** Maximum short orders of a task. */
const maxShortOrders = 16;
const pollMs = 2000;

/** Work to submit. Each order is passed as one JSON argument to a built entry script, which executes it in its own process. */
interface Orders {
  orders: readonly unknown[];
  entry: string;
  /** Folder of script, orders and logs: all hosts must see it, and this installation, under the same path. */
  folder: string;
  /** Name of the job, after `inferscope-`, and of its files. */
  name: string;
  /** Options of sbatch. */
  options: readonly string[];
}

/** A submitted array of tasks. */
export interface JobArray {
  id: string;
  /** Id of the task with this order, as printed by squeue. */
  taskOf: (order: number) => string;
}

/**
 * Submits an array of tasks, one order each unless `tasks` is less or an array may not have as many: of n tasks, task i executes
 * orders i, i + n, i + 2n, …, each in its own process.
 * @param maxConcurrent maximum concurrent tasks; null: as many as Slurm starts
 * @throws E_TOOL_MISSING, E_TOOL_FAILED
 */
export async function submitArray(
  work: Orders,
  maxConcurrent: number | null,
  tasks = work.orders.length,
): Promise<JobArray> {
  const width = Math.min(tasks, maxTasks);
  const limit = maxConcurrent === null ? '' : `%${maxConcurrent}`;
  const jobOptions = [
    `--array=0-${width - 1}${limit}`,
    `--output=${join(work.folder, [work.name, '%a.log'].join('-'))}`,
  ];
  const id = await submitOrders(work, width, jobOptions);
  return { id, taskOf: (order) => `${id}_${order % width}` };
}

/**
 * Number of tasks for orders that take seconds, since Slurm takes about as long to start a task: a few for each that can run at a time, so that
 * the slots end together, and more if a task would get too many orders to lose.
 * @param slots tasks that can run at a time, at most; null if unknown
 */
export const tasksForShort = (orders: number, slots: number | null): number =>
  Math.min(orders, Math.max((slots ?? orders) * tasksPerSlot, Math.ceil(orders / maxShortOrders)));

/** Cores of the partition that a job with these options of sbatch gets; null if Slurm does not answer. */
export async function partitionCores(options: readonly string[]): Promise<number | null> {
  const named = options.flatMap((word, index) => {
    const [, joined] = /^(?:--partition=|-p)(.+)$/.exec(word) ?? [];
    return joined ?? (word === '--partition' || word === '-p' ? (options[index + 1] ?? []) : []);
  });
  const partition = named.at(-1) ?? process.env['SBATCH_PARTITION'];
  const filter = partition === undefined ? [] : ['--partition', partition];
  const run = await runTool('sinfo', ['--noheader', ...filter, '--format', '%P|%C'], {
    timeoutMs: commandMs,
  });
  // Cores are printed as allocated/idle/other/total, other ones are of nodes that are down; the default partition has an asterisk.
  const cores = run.stdout.split('\n').flatMap((line) => {
    const [, mark, allocated, idle] = /^[^|]*?(\*?)\|(\d+)\/(\d+)\//.exec(line) ?? [];
    return mark === undefined || (partition === undefined && mark === '')
      ? []
      : Number(allocated) + Number(idle);
  });
  return cores.length === 0 ? null : cores.reduce((sum, count) => sum + count, 0);
}

/** Submits a job that executes one order after the jobs `after` have ended. @throws E_TOOL_MISSING, E_TOOL_FAILED */
export async function submitAfter(work: Orders, after: readonly string[]): Promise<string> {
  // sbatch uses only the last --dependency.
  const dependency = `--dependency=${['afterany', ...after].join(':')}`;
  return submitOrders(work, 1, [dependency, `--output=${join(work.folder, work.name)}.log`]);
}

/** Orders may contain a user's command with its secrets, so only the user can read them. */
async function submitOrders(
  { orders, entry, folder, name, options }: Orders,
  width: number,
  jobOptions: readonly string[],
): Promise<string> {
  const script = join(folder, `${name}.sh`);
  const ordersPath = `${script}.orders`;
  writeFileSync(ordersPath, orders.map((order) => `${JSON.stringify(order)}\n`).join(''), { mode: 0o600 });
  const program = `${shellWord(process.execPath)} ${shellWord(childEntry(entry))}`;
  const lines = [
    '#!/bin/bash',
    `for ((i = \${SLURM_ARRAY_TASK_ID:-0}; i < ${orders.length}; i += ${width})); do`,
    `  ${program} "$(sed -n "$((i + 1))p" ${shellWord(ordersPath)})"`,
    'done',
    '',
  ];
  writeFileSync(script, lines.join('\n'), { mode: 0o755 });
  return submitJob(script, [...options, `--job-name=inferscope-${name}`, ...jobOptions]);
}

/**
 * Submits a script.
 * @param options of sbatch
 * @returns the id of its job
 * @throws E_TOOL_MISSING, E_TOOL_FAILED
 */
async function submitJob(script: string, options: readonly string[]): Promise<string> {
  const run = await runTool('sbatch', ['--parsable', ...options, script], { timeoutMs: commandMs });
  if (run.notFound) throw noSbatch();
  const id = run.stdout.trim().split(';')[0]!;
  if (run.ok && id !== '') return id;
  throw new InferscopeError('E_TOOL_FAILED', {
    what: 'sbatch did not accept the job',
    why: `${failureLine(run)}.`.replace(/\.+$/, '.'),
    fix: `Give it the options that this cluster requires: --sbatch '--partition=NAME --time=30'`,
  });
}

export const noSbatch = (): InferscopeError =>
  new InferscopeError('E_TOOL_MISSING', {
    what: '--on slurm needs sbatch',
    why: 'sbatch was not found on PATH.',
    fix: 'Type the command on a login node of the cluster, or leave out --on slurm.',
  });

export interface QueuedJobs {
  /** Ids of running and waiting jobs, and of the tasks of arrays. */
  ids: ReadonlySet<string>;
  /** Ids of those that wait, and have not started or will start again. */
  waiting: ReadonlySet<string>;
  running: number;
  /** Why the first of these waits, as printed by squeue: Resources, Priority, …; null if none waits. */
  reason: string | null;
}

/** Which of these jobs are still queued or running; null if Slurm does not answer. */
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
  const waiting = jobs.filter(([, state]) => state === 'PENDING' || state === 'REQUEUED');
  return {
    ids: new Set(jobs.map(([id]) => id)),
    waiting: new Set(waiting.map(([id]) => id)),
    running: jobs.length - waiting.length,
    reason: waiting.find(([, , reason]) => reason !== 'None' && reason !== 'Dependency')?.[2] ?? null,
  };
}

/** Waits until these jobs have ended or `signal` aborts. @param onPoll called with the queued jobs; null if Slurm does not answer */
export async function whileQueued(
  ids: readonly string[],
  signal: AbortSignal,
  onPoll: (queued: QueuedJobs | null) => void,
): Promise<void> {
  while (!signal.aborted) {
    const queued = await queuedJobs(ids);
    if (queued?.ids.size === 0) return;
    onPoll(queued);
    await sleep(pollMs, undefined, { signal }).catch(() => {});
  }
}

/** Text for the progress line. */
export const queueText = (queued: QueuedJobs | null): string =>
  queued === null
    ? 'Slurm does not answer'
    : `${queued.running} running${queued.reason === null ? '' : `, others wait: ${queued.reason}`}`;

/** Cancels jobs, including the tasks of an array; jobs that have ended are not an error. */
export async function cancelJobs(ids: readonly string[]): Promise<void> {
  await runTool('scancel', [...ids], { timeoutMs: commandMs });
}
