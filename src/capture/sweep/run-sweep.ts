import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SweepFailure, SweepRun } from '../../model/documents/sweep.js';
import { stampOf } from '../../model/result-names.js';
import { diskObstacle, obstacleOf, type Obstacle } from './environment-failure.js';
import type { ExecuteRun } from './execute-run.js';
import { isLeft, ownProcess, writeJournal, type Journal } from './journal.js';
import { stampedOutput, stampRun } from './plan.js';
import { diskFailure, type GpuWatch } from './preflight.js';
import { readOutcome, readProfile, type RunOutcome } from './read-outcome.js';
import { memoryFigures } from '../../model/documents/memory-profile.js';

/** Pause between two tries of the same run: a driver or daemon needs time to recover. */
const retryPauseMs = 1_000;

interface SweepControl {
  execute: ExecuteRun;
  gpus: GpuWatch;
  /** Folders that need free space: results, sessions. */
  folders: readonly string[];
  secrets: string[];
  signal: AbortSignal;
  kill: AbortSignal;
  onRun: (event: { type: 'start' | 'end' | 'retry'; run: SweepRun }) => void;
}

/**
 * Executes the remaining runs of a sweep in sequence; every change is written to the journal immediately.
 * Never throws for a run that failed: the others still run, except those that its environment would also make fail.
 * @returns the first environment failure that prevented runs
 */
export async function runSweep(journal: Journal, control: SweepControl): Promise<SweepFailure | null> {
  const { sweep } = journal;
  sweep.status = 'running';
  sweep.process = ownProcess();
  adoptFinished(journal);
  writeJournal(journal);
  const obstacles: Obstacle[] = [];
  for (const run of sweep.runs) {
    if (!isLeft(run) || obstacles.some(({ blocks }) => blocks(run))) continue;
    if (control.signal.aborted) break;
    const obstacle = await carryOut(run, journal, control);
    if (obstacle) obstacles.push(obstacle);
    control.onRun({ type: 'end', run });
  }
  const stopped = control.signal.aborted || obstacles.length > 0;
  sweep.status = stopped && sweep.runs.some(isLeft) ? 'interrupted' : 'complete';
  sweep.ended_at = new Date().toISOString();
  sweep.process = null;
  writeJournal(journal);
  return obstacles[0]?.failure ?? null;
}

/** The last run of a killed sweep finished on its own: its profile is valid. */
function adoptFinished({ sweep, folder }: Journal): void {
  for (const run of sweep.runs) {
    if (run.outcome !== 'running') continue;
    const profile = run.output?.endsWith('.json') ? readProfile(join(folder, run.output)) : null;
    if (profile?.metadata.status !== 'measured') {
      Object.assign(run, { outcome: 'interrupted', pid: null });
      continue;
    }
    Object.assign(run, {
      outcome: 'measured',
      pid: null,
      session_id: profile.metadata.session_id,
      duration_s: profile.metadata.duration_s,
      figures: memoryFigures(profile),
      issues: profile.metadata.issues.map((issue) => ({ severity: 'warning', ...issue })),
    });
  }
}

/** @returns the reason that also prevents other runs */
async function carryOut(run: SweepRun, journal: Journal, control: SweepControl): Promise<Obstacle | null> {
  const { sweep } = journal;
  Object.assign(run, { attempts: 0, failure: null, issues: [] });
  let obstacle: Obstacle | null = null;
  for (;;) {
    const full = diskFailure(control.folders, sweep.protocol.min_free_bytes);
    if (full) {
      Object.assign(run, { outcome: 'not_run', failure: full });
      obstacle = diskObstacle(full);
      break;
    }
    const held = await control.gpus.cleared(control.signal);
    if (control.signal.aborted) {
      if (run.attempts > 0) run.outcome = 'interrupted';
      break;
    }
    const outcome = await attempt(run, journal, control);
    Object.assign(run, { ...outcome, issues: [...(held ? [held] : []), ...outcome.issues], pid: null });
    obstacle = obstacleOf(run);
    if (obstacle) {
      run.failure = obstacle.failure = { ...obstacle.failure, infrastructure: true };
      if (run.outcome === 'failed') run.outcome = 'not_run';
      break;
    }
    const again = outcome.failure?.infrastructure === true && run.attempts <= sweep.protocol.retries;
    if (!again || control.signal.aborted) break;
    control.onRun({ type: 'retry', run });
    writeJournal(journal);
    await sleep(retryPauseMs, null, { signal: control.signal }).catch(() => {});
  }
  writeJournal(journal);
  return obstacle;
}

/** A profile is named by the start time of its run; if the name is taken, wait for the next second. */
async function nameProfile(run: SweepRun, folder: string): Promise<void> {
  for (;;) {
    const stamp = stampOf(new Date());
    const output = stampedOutput(run, stamp);
    if (output === null || !existsSync(join(folder, output))) return stampRun(run, stamp);
    await sleep(100);
  }
}

async function attempt(run: SweepRun, journal: Journal, control: SweepControl): Promise<RunOutcome> {
  const { sweep, folder } = journal;
  await nameProfile(run, folder);
  const started = Date.now();
  const logs = {
    folder: join(folder, `sweep-${sweep.stamp}`),
    name: `run-${String(run.number).padStart(3, '0')}`,
  };
  Object.assign(run, {
    outcome: 'running',
    attempts: run.attempts + 1,
    started_at: new Date(started).toISOString(),
    log: `sweep-${sweep.stamp}/${logs.name}.stderr.log`,
  });
  control.onRun({ type: 'start', run });
  // Written before the start: a sweep killed now must find the run again.
  writeJournal(journal);
  const timeoutMs = sweep.protocol.timeout_s === null ? null : sweep.protocol.timeout_s * 1000;
  const end = await control.execute({
    arguments: run.arguments,
    logs,
    timeoutMs,
    secrets: control.secrets,
    signal: control.signal,
    kill: control.kill,
    onStart: (pid) => {
      run.pid = pid;
      writeJournal(journal);
    },
  });
  run.duration_s = (Date.now() - started) / 1000;
  const profilePath = run.output?.endsWith('.json') ? join(folder, run.output) : null;
  const written = profilePath === null ? null : readProfile(profilePath);
  // A file of an earlier try is not a result of this one.
  const profile = written && Date.parse(written.metadata.timestamp) >= started - 1000 ? written : null;
  // Without a requested dtype an engine uses its own: the embedded one computes in float32.
  if (profile?.model_info.dtype && !run.arguments.includes('--dtype'))
    run.parameters['dtype'] = profile.model_info.dtype;
  return readOutcome(end, { profilePath, profile, timeoutMs, stopped: control.signal.aborted });
}
