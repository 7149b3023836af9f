import { InferscopeError } from '../../model/errors.js';
import { failureLine, runTool } from '../doctor/run-tool.js';

/** Slurm's commands talk to its controller: one that does not answer is not waited for longer. */
const commandMs = 60_000;

/**
 * Submits a script.
 * @param options of sbatch
 * @returns the id of its job
 * @throws E_TOOL_MISSING, E_TOOL_FAILED
 */
export async function submitJob(script: string, options: readonly string[]): Promise<string> {
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

interface QueuedJobs {
  /** Jobs and tasks of arrays that run, and that wait. */
  running: number;
  waiting: number;
  /** Why the first of these waits, as squeue says it: Resources, Priority, …; null where none does. */
  reason: string | null;
}

/** What is left of these jobs; null where Slurm does not answer, which says nothing of them. */
export async function queuedJobs(ids: readonly string[]): Promise<QueuedJobs | null> {
  const run = await runTool(
    'squeue',
    ['--noheader', '--array', '--jobs', ids.join(','), '--format', '%T|%r'],
    {
      timeoutMs: commandMs,
    },
  );
  // Jobs that Slurm has forgotten are no longer queued.
  if (!run.ok && !/invalid job id/i.test(run.stderr)) return null;
  const jobs = run.stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => line.split('|') as [state: string, reason: string]);
  const waits = jobs.filter(([state]) => state === 'PENDING' || state === 'REQUEUED');
  return {
    running: jobs.length - waits.length,
    waiting: waits.length,
    reason: waits.find(([, reason]) => reason !== 'None' && reason !== 'Dependency')?.[1] ?? null,
  };
}

/** Ends jobs, those of an array included; jobs that are gone are no error. */
export async function cancelJobs(ids: readonly string[]): Promise<void> {
  await runTool('scancel', [...ids], { timeoutMs: commandMs });
}
