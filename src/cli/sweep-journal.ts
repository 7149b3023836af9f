import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import process from 'node:process';
import {
  needsRun,
  journalPath,
  journalsIn,
  mergePlan,
  readJournal,
  type Journal,
} from '../capture/sweep/journal.js';
import { pendingRun, runKey, variedOf } from '../capture/sweep/plan.js';
import type { SweepRun } from '../model/documents/sweep.js';
import { InferscopeError } from '../model/errors.js';
import { stampOf } from '../model/result-names.js';
import { privacyOfCommand } from '../record/privacy.js';
import { plural } from '../vocabulary/format.js';
import { warn } from './output.js';
import type { RequestedSweep, SweepOptions } from './sweep-plan.js';

const defaultTimeoutS = 3600;
const defaultRetries = 1;
const defaultFreeBytes = 2 ** 30;

/** Durations of runs measured by earlier sweeps in this folder, by key. */
export function earlierDurations(folder: string): Map<string, number> {
  const times = new Map<string, number>();
  for (const path of journalsIn(folder).toReversed()) {
    const runs = readOrNull(path)?.sweep.runs ?? [];
    for (const { key, outcome, duration_s: seconds } of runs)
      if (outcome === 'measured' && seconds !== null) times.set(key, seconds);
  }
  return times;
}

function readOrNull(path: string): Journal | null {
  try {
    return readJournal(path);
  } catch {
    return null;
  }
}

const relativePath = (folder: string): string => relative(process.cwd(), folder) || '.';

/** A new sweep. */
export function newJournal(requested: RequestedSweep, options: SweepOptions, folder: string): Journal {
  const stamp = freeStamp(folder);
  const runs = requested.plan.runs.map((run, index) =>
    pendingRun(run, { number: index + 1, stamp, folder: relativePath(folder) }),
  );
  return {
    path: journalPath(folder, stamp),
    folder,
    sweep: {
      name: options.name ?? null,
      stamp,
      kind: requested.plan.kind,
      status: 'planned',
      started_at: new Date().toISOString(),
      ended_at: null,
      command: privacyOfCommand().command,
      working_directory: process.cwd(),
      varied: requested.plan.varied,
      config: requested.config,
      protocol: {
        timeout_s: (options.timeout ?? requested.timeoutMs ?? defaultTimeoutS * 1000) / 1000,
        retries: options.retries ?? requested.retries ?? defaultRetries,
        min_free_bytes: options.minFreeDisk ?? defaultFreeBytes,
      },
      process: null,
      runs,
    },
  };
}

/** Two sweeps that start in the same second get different names. */
function freeStamp(folder: string): string {
  const stamp = stampOf(new Date());
  let name = stamp;
  for (let n = 2; existsSync(journalPath(folder, name)); n++) name = `${stamp}-${n}`;
  return name;
}

/**
 * The sweep to resume: the named journal, else the newest in the folder that has the requested configuration file or one
 * of its runs; if nothing is requested, the newest with runs left.
 * Changes since then are reported on stderr.
 * @throws E_USAGE when there is none, E_RECORD_FILE
 */
export function resumedJournal(
  requested: RequestedSweep | null,
  options: SweepOptions,
  folder: string,
): Journal {
  const journal =
    typeof options.resume === 'string'
      ? readJournal(options.resume)
      : newestResumable(requested, folder, options.retryFailed === true);
  const { sweep } = journal;
  if (options.retryFailed)
    for (const run of sweep.runs) if (run.failure) Object.assign(run, { outcome: 'pending', failure: null });
  if (existsSync(sweep.working_directory)) process.chdir(sweep.working_directory);
  if (options.timeout !== undefined) sweep.protocol.timeout_s = options.timeout / 1000;
  if (options.retries !== undefined) sweep.protocol.retries = options.retries;
  if (options.minFreeDisk !== undefined) sweep.protocol.min_free_bytes = options.minFreeDisk;
  if (requested === null) warnOfChange(journal);
  else {
    const merged = mergePlan(journal, requested.plan, relativePath(journal.folder));
    if (merged.added > 0 || merged.gone > 0)
      warn(
        `the configuration changed since this sweep started: ${plural(merged.unchanged, 'run')} unchanged, ${merged.added} added, ${merged.gone} removed (finished runs stay in the results)`,
      );
    sweep.runs = merged.runs;
    sweep.varied = variedOf(merged.runs);
    sweep.config = requested.config ?? sweep.config;
  }
  return journal;
}

/** Warns if the configuration file changed since the sweep started: the sweep is resumed as planned. */
function warnOfChange({ sweep }: Journal): void {
  if (sweep.config === null) return;
  const { path, sha256 } = sweep.config;
  const now = existsSync(path) ? createHash('sha256').update(readFileSync(path)).digest('hex') : null;
  if (now === sha256) return;
  warn(
    now === null
      ? `${path} no longer exists; resuming the sweep as planned`
      : `${path} has changed since the sweep started; resuming as planned (to use the new file: --config ${relativePath(path)} --resume)`,
  );
}

function newestResumable(requested: RequestedSweep | null, folder: string, failedToo: boolean): Journal {
  const keys = new Set(requested?.plan.runs.map((run) => runKey(run.arguments)));
  const isRemaining = (run: SweepRun) => needsRun(run) || (failedToo && run.failure !== null);
  const journal = journalsIn(folder)
    .map(readOrNull)
    .filter((journal) => journal !== null)
    .find(({ sweep }) =>
      requested === null
        ? sweep.runs.some(isRemaining)
        : sweep.kind === requested.plan.kind &&
          ((requested.config !== null && sweep.config?.path === requested.config.path) ||
            sweep.runs.some(({ key }) => keys.has(key))),
    );
  if (journal) return journal;
  const hasJournals = journalsIn(folder).length > 0;
  throw new InferscopeError('E_USAGE', {
    what: `the folder ${relativePath(folder)} has no sweep to resume`,
    why: !hasJournals
      ? 'It contains no sweep journal (sweep-<stamp>.json).'
      : requested === null
        ? `All runs of its sweeps are ${failedToo ? 'measured' : 'finished'}.`
        : 'Its sweeps have another configuration.',
    fix: hasJournals
      ? `To resume another sweep, name its journal: inferscope sweep --resume FOLDER/sweep-<stamp>.json${failedToo || requested !== null ? '' : '. To repeat failed runs, add --retry-failed.'}`
      : 'Start one: inferscope sweep --config models.yaml, or name the folder of another one: --output FOLDER',
  });
}
