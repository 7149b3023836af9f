import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SweepRun } from '../../model/documents/sweep.js';
import { writeAtomically } from '../../model/atomic-write.js';
import {
  cancelJobs,
  type JobArray,
  type QueuedJobs,
  queuedJobs,
  submitArray,
  whileQueued,
} from '../tools/slurm.js';
import { type ExecuteRun, executeHere, logsOf, type RunEnd, type RunRequest } from './execute-run.js';

/** Maximum delay until a file written by another host is visible here. */
const fileDelayMs = 10_000;
/** Longer than KillWait, after which Slurm kills a canceled task (30 s by default). */
const cancelMs = 60_000;

/** One run of a sweep as a task of an array. */
export type RunOrder = Pick<RunRequest, 'arguments' | 'logs' | 'timeoutMs'>;

const endPath = ({ folder, name }: RunRequest['logs']): string => join(folder, `${name}.end.json`);

/**
 * Executes the order on the machine of its task, and writes how it ended to a file there. Signals are not forwarded: Slurm sends them to all
 * processes of a task.
 */
export async function executeOrder(order: RunOrder, secrets: string[]): Promise<void> {
  // A requeued task starts again.
  rmSync(endPath(order.logs), { force: true });
  const { signal } = new AbortController();
  const end = await executeHere({ ...order, secrets, signal, kill: signal, onStart: () => {} });
  writeAtomically(endPath(order.logs), JSON.stringify(end), { mode: 0o600 });
}

/** The result file of a run on another machine; null if the run has not written it. */
export function readRunEnd(logs: RunRequest['logs']): RunEnd | null {
  const path = endPath(logs);
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as RunEnd) : null;
}

interface PendingRequest {
  request: RunRequest;
  resolve: (end: RunEnd) => void;
  reject: (error: unknown) => void;
}

/**
 * Executes runs as Slurm tasks; runs requested in one turn become one array. A task that ends without a result (canceled, killed, out of
 * time) is a failure of the machine. Ctrl-C cancels the tasks and waits until they have saved their results and these are visible here; a
 * second one does not wait.
 * @param folder of scripts and logs, visible to all hosts under the same path
 * @param options of sbatch
 * @param maxTasks tasks at the same time; null: as many as Slurm starts
 */
export function executorOnSlurm({
  folder,
  options,
  maxTasks,
  onQueue,
}: {
  folder: string;
  options: readonly string[];
  maxTasks: number | null;
  onQueue: (queued: QueuedJobs | null) => void;
}): ExecuteRun {
  let queue: PendingRequest[] = [];
  let arrays = 0;
  const submit = async () => {
    const pending = queue;
    queue = [];
    try {
      await runArray(pending, { folder, options, maxTasks, onQueue, name: `sweep-${++arrays}` });
    } catch (error) {
      for (const { reject } of pending) reject(error);
    }
  };
  return (request) =>
    new Promise((resolve, reject) => {
      if (queue.length === 0) setImmediate(() => void submit());
      queue.push({ request, resolve, reject });
    });
}

async function runArray(
  pending: readonly PendingRequest[],
  {
    folder,
    options,
    maxTasks,
    onQueue,
    name,
  }: {
    folder: string;
    options: readonly string[];
    maxTasks: number | null;
    onQueue: (queued: QueuedJobs | null) => void;
    name: string;
  },
): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const orders = pending.map(({ request: { arguments: words, logs, timeoutMs } }): RunOrder => {
    rmSync(endPath(logs), { force: true });
    return { arguments: words, logs, timeoutMs };
  });
  const array = await submitArray({ orders, entry: 'run-child', folder, name, options }, maxTasks);
  pending.forEach(({ request }, index) => request.onStart({ pid: null, job: array.taskOf(index) }));
  const { signal, kill } = pending[0]!.request;
  const remaining = new Map(pending.entries());
  const resolveEnded = (queued: QueuedJobs | null) => {
    for (const [index, { request, resolve }] of remaining) {
      // A requeued task may have written an end before.
      const end = queued?.ids.has(array.taskOf(index)) ? null : readRunEnd(request.logs);
      if (end === null) continue;
      remaining.delete(index);
      resolve(end);
    }
  };
  const onPoll = (queued: QueuedJobs | null) => {
    onQueue(queued);
    if (queued !== null) resolveEnded(queued);
  };
  await whileQueued([array.id], signal, onPoll);
  // Canceled before they start, tasks write no result.
  const beforeCancel = signal.aborted ? await queuedJobs([array.id]) : null;
  if (signal.aborted) {
    await cancelJobs([array.id]);
    await whileQueued([array.id], AbortSignal.any([kill, AbortSignal.timeout(cancelMs)]), onPoll);
  }
  // A shared file system may show a file later than Slurm reports the end of its task.
  resolveEnded(null);
  const isLate = () => [...remaining.keys()].some((index) => !beforeCancel?.waiting.has(array.taskOf(index)));
  for (let waitedMs = 0; isLate() && waitedMs < fileDelayMs && !kill.aborted; waitedMs += 500) {
    await sleep(500);
    resolveEnded(null);
  }
  for (const [index, { request, resolve }] of remaining)
    resolve(endOfLostTask(request, array, index, folder, name));
}

function endOfLostTask(
  request: RunRequest,
  array: JobArray,
  index: number,
  folder: string,
  name: string,
): RunEnd {
  const job = array.taskOf(index);
  const log = join(folder, `${name}-${job.split('_')[1]}.log`);
  const lastLine = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n').at(-1)! : '';
  return {
    ...logsOf(request),
    startedAt: new Date().toISOString(),
    exit_code: null,
    signal: null,
    timedOut: false,
    startError: null,
    start_ns: 0,
    end_ns: 0,
    stdoutTail: '',
    stderrTail: '',
    lost: {
      code: 'E_TOOL_FAILED',
      what: `task ${job} of Slurm ended without a result`,
      why:
        lastLine === '' ? 'It was canceled or killed, or its node was lost.' : `It wrote last: ${lastLine}`,
      fix: `Log: ${basename(log)}. More time or memory: --sbatch '--time=60 --mem=16G'`,
      infrastructure: true,
    },
  };
}

/** The tasks of these runs that are still in Slurm's queue. */
export async function findQueuedTasks(runs: readonly Pick<SweepRun, 'job' | 'outcome'>[]): Promise<string[]> {
  const jobs = runs.flatMap(({ job, outcome }) => (outcome === 'running' && job !== null ? [job] : []));
  if (jobs.length === 0) return [];
  const queued = await queuedJobs([...new Set(jobs.map((job) => job.split('_')[0]!))]);
  return jobs.filter((job) => queued?.ids.has(job));
}
