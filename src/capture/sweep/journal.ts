import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { document, schemaMajor } from '../../model/document.js';
import {
  sweepDocumentSchema,
  sweepVersion,
  type SweepResult,
  type SweepRun,
} from '../../model/documents/sweep.js';
import { InferscopeError, messageOf, systemErrorCode } from '../../model/errors.js';
import { pendingRun, type SweepPlan } from './plan.js';
import { hasWord, findProcess } from './running.js';
import { writeAtomically } from '../../model/atomic-write.js';

const journalPattern = /^sweep-\d{8}-\d{6}(?:-\d+)?\.json$/;

/** A sweep on disk: every change is written atomically, so that a crash leaves the state before or after it. */
export interface Journal {
  path: string;
  /** Folder of the results: paths in the sweep are relative to it. */
  folder: string;
  sweep: SweepResult;
}

export const journalPath = (folder: string, stamp: string): string => join(folder, `sweep-${stamp}.json`);

/**
 * Replaces the journal atomically and durably. It contains complete commands, so it is readable only by
 * the user.
 */
export function writeJournal({ path, sweep }: Journal): void {
  const text = `${JSON.stringify(document('sweep', sweepVersion, sweep), null, 2)}\n`;
  writeAtomically(path, text, { mode: 0o600, flush: true });
}

/** Folder of the logs of a sweep's runs. */
export const logsFolder = ({ folder, sweep }: Journal): string => join(folder, `sweep-${sweep.stamp}`);

/** Removes the journal and the logs of a sweep of which no run was started or submitted: there is nothing to resume. */
export function discardUnstarted(journal: Journal): void {
  if (
    journal.sweep.runs.some(
      ({ session_id, pid, job, figures, exit_code }) => session_id ?? pid ?? job ?? exit_code ?? figures[0],
    )
  )
    return;
  rmSync(journal.path, { force: true });
  rmSync(logsFolder(journal), { recursive: true, force: true });
}

/** @throws E_RECORD_FILE for a file that cannot be read or is not a journal */
export function readJournal(path: string): Journal {
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    const missing = systemErrorCode(error) === 'ENOENT';
    throw unreadableJournal(
      path,
      missing ? messageOf(error) : `It is not complete JSON: ${messageOf(error)}.`,
    );
  }
  if (schemaMajor((parsed as { schema?: unknown } | null)?.schema, 'sweep') > 1)
    throw unreadableJournal(path, 'It was written by a newer inferscope.');
  const checked = sweepDocumentSchema.safeParse(parsed);
  if (!checked.success) {
    const [issue] = checked.error.issues;
    throw unreadableJournal(path, `${issue?.path.join('.')}: ${issue?.message}`);
  }
  return { path, folder: dirname(path), sweep: checked.data.data };
}

function unreadableJournal(path: string, why: string): InferscopeError {
  return new InferscopeError('E_RECORD_FILE', {
    what: `${path} is not a sweep journal`,
    why,
    fix: 'Give the sweep-<stamp>.json next to the results, or start a new sweep: inferscope sweep --config …',
  });
}

/** Journals in a folder, newest first. */
export function journalsIn(folder: string): string[] {
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch {
    return [];
  }
  return names
    .filter((name) => journalPattern.test(name))
    .toSorted()
    .toReversed()
    .map((name) => join(folder, name));
}

/** Whether `--resume` repeats a run: unfinished runs, and runs that failed because of the machine. */
export function needsRun({ outcome, failure }: Pick<SweepRun, 'outcome' | 'failure'>): boolean {
  if (outcome === 'failed' || outcome === 'timed_out' || outcome === 'partial')
    return failure?.infrastructure === true;
  return outcome !== 'measured';
}

interface Merged {
  runs: SweepRun[];
  /** Configurations of the journal that the new plan lacks; their results stay. */
  gone: number;
  added: number;
  unchanged: number;
}

/** The runs of a resumed sweep with a new plan: runs with the same command keep their number, file and result, and the rest is appended. */
export function mergePlan(
  { sweep, folder }: Pick<Journal, 'sweep' | 'folder'>,
  plan: SweepPlan,
  shownFolder = folder,
): Merged {
  const known = new Map(sweep.runs.map((run) => [run.key, run]));
  let number = Math.max(0, ...sweep.runs.map((run) => run.number));
  const runs = plan.runs.map((planned): SweepRun => {
    const fresh = pendingRun(planned, { number: number + 1, stamp: sweep.stamp, folder: shownFolder });
    const before = known.get(fresh.key);
    if (before) return before;
    number++;
    return fresh;
  });
  const unchanged = runs.filter(({ key }) => known.has(key)).length;
  const inPlan = new Set(runs.map(({ key }) => key));
  const finished = sweep.runs.filter((run) => !inPlan.has(run.key) && !needsRun(run));
  return {
    runs: [...finished, ...runs].toSorted((a, b) => a.number - b.number),
    gone: sweep.runs.length - unchanged,
    added: runs.length - unchanged,
    unchanged,
  };
}

/**
 * Rejects a sweep that another process is running, or with a run that still continues (the sweep was killed, the run was not).
 * @param queued tasks of its runs that are still in Slurm's queue
 * @throws E_USAGE
 */
export function refuseRunning({ path, sweep }: Journal, queued: readonly string[]): void {
  if (queued.length > 0)
    throw new InferscopeError('E_USAGE', {
      what: `runs of ${path} are still with Slurm: ${queued.slice(0, 3).join(', ')}${queued.length > 3 ? ', …' : ''}`,
      why: 'The sweep that submitted them has exited, but the tasks continue.',
      fix: `Wait until squeue no longer lists them, or cancel them: scancel ${[...new Set(queued.map((job) => job.split('_')[0]))].join(' ')}`,
    });
  const owner = sweep.process;
  if (owner === null || owner.host !== hostname()) return;
  const inUseError = (what: string, pid: number) =>
    new InferscopeError('E_USAGE', {
      what,
      why: 'Two runs at once would disturb each other.',
      fix: `Wait until it finishes, or stop it: kill ${pid}`,
    });
  if (owner.pid !== process.pid && sweep.status === 'running' && hasWord(owner.pid, 'sweep'))
    throw inUseError(`the sweep ${path} is already running (process ${owner.pid})`, owner.pid);
  for (const { pid, number, outcome, arguments: words } of sweep.runs) {
    if (pid === null && outcome !== 'running') continue;
    const found = pid !== null && hasWord(pid, words.at(-1) ?? '') ? pid : findProcess(words);
    if (found !== null)
      throw inUseError(`run ${number} of ${path} is still running (process ${found})`, found);
  }
}

export const thisProcess = (): NonNullable<SweepResult['process']> => ({
  host: hostname(),
  pid: process.pid,
});
