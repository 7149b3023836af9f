import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { endWithParent, type Mark } from './end-with-parent.js';
import { InferscopeError, messageOf, systemErrorCode } from './errors.js';
import { packageRoot } from './installation.js';

/** How a process of ours failed before its work: the exception of spawn, or its exit code and stderr. */
export type FailedStart = { thrown: unknown } | { exitCode: number | null | undefined; stderr: string };

/** System errors for too many processes or files, or too little memory. */
const exhaustionCodes = new Set(['EAGAIN', 'EMFILE', 'ENFILE', 'ENOMEM']);

/**
 * Starts a process of ours, which ends when this one does.
 * @param work completes "the process that …", e.g. "runs the query"
 * @param entry its program file
 * @param spawn starts it, with the mark added to its environment
 * @throws E_PROCESS_START if the system cannot start it
 */
export async function startProcess<T extends ChildProcess>(
  work: string,
  entry: string,
  spawn: (mark: Mark) => T,
): Promise<T> {
  try {
    const child = endWithParent(spawn);
    // The reason is reported as an event.
    if (child.pid === undefined) throw (await once(child, 'error'))[0];
    return child;
  } catch (thrown) {
    throw startError(work, entry, { thrown });
  }
}

/**
 * The error of a process of ours that did not start: its program file is missing or from another build, or the system could not start it.
 * It says nothing about the work, so it must not be reported as a failure of the work.
 * @returns E_PROCESS_START
 */
export function startError(work: string, entry: string, failed: FailedStart): InferscopeError {
  const hasThrown = 'thrown' in failed;
  const system = hasThrown ? systemErrorCode(failed.thrown) : null;
  return new InferscopeError('E_PROCESS_START', {
    what: `the process that ${work} could not start: ${entry}${hasThrown ? '' : ` (exit code ${failed.exitCode})`}`,
    why: hasThrown ? `${messageOf(failed.thrown)}.` : failed.stderr.trim() || 'It wrote nothing to stderr.',
    fix:
      system !== null && exhaustionCodes.has(system)
        ? 'End other processes, or raise the limits of this shell: ulimit -u (processes), ulimit -n (open files).'
        : `Install inferscope again; in a checkout, type npm run build in ${packageRoot()}`,
  });
}
