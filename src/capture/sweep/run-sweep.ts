import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SweepFailure, SweepRun } from '../../model/documents/sweep.js';
import { inLanes } from '../../model/lanes.js';
import { stampOf } from '../../model/result-names.js';
import { diskObstacle, obstacleOf, type Obstacle } from './environment-failure.js';
import { readRunEnd } from './execute-on-slurm.js';
import type { ExecuteRun, RunEnd, RunRequest } from './execute-run.js';
import { logsFolder, needsRun, thisProcess, writeJournal, type Journal } from './journal.js';
import { stampedOutput, stampRun } from './plan.js';
import { diskFailure, type GpuWatch } from './preflight.js';
import { readOutcome, readProfile } from './read-outcome.js';
import { memoryFigures, type MemoryProfile } from '../../model/documents/memory-profile.js';

/** Pause between two tries of the same run: a driver or daemon needs time to recover. */
const retryPauseMs = 1_000;

interface SweepControl {
  execute: ExecuteRun;
  /** Maximum concurrent runs: one if they share a machine. */
  lanes: number;
  gpus: GpuWatch;
  /** Folders that need free space: results, sessions. */
  folders: readonly string[];
  secrets: string[];
  signal: AbortSignal;
  kill: AbortSignal;
  onRun: (event: { type: 'start' | 'end' | 'retry'; run: SweepRun }) => void;
}

/**
 * Executes the remaining runs of a sweep in their order; every change is written to the journal immediately.
 * Never throws for a run that failed: the others still run, except those that would fail in the same environment.
 * @returns the first environment failure that prevented runs
 */
export async function runSweep(journal: Journal, control: SweepControl): Promise<SweepFailure | null> {
  const { sweep } = journal;
  sweep.status = 'running';
  sweep.process = thisProcess();
  adoptFinished(journal);
  writeJournal(journal);
  const obstacles: Obstacle[] = [];
  await inLanes(sweep.runs.filter(needsRun), control.lanes, async (run) => {
    if (control.signal.aborted || obstacles.some(({ blocks }) => blocks(run))) return;
    const obstacle = await executeWithRetries(run, journal, control);
    if (obstacle) obstacles.push(obstacle);
    control.onRun({ type: 'end', run });
  });
  const stopped = control.signal.aborted || obstacles.length > 0;
  sweep.status = stopped && sweep.runs.some(needsRun) ? 'interrupted' : 'complete';
  sweep.ended_at = new Date().toISOString();
  sweep.process = null;
  writeJournal(journal);
  return obstacles[0]?.failure ?? null;
}

/** Takes over results after a killed sweep: a run that finished on its own, locally or as a Slurm task, is valid. */
function adoptFinished(journal: Journal): void {
  for (const run of journal.sweep.runs) {
    if (run.outcome !== 'running') continue;
    const end = run.job === null ? null : readRunEnd(runLogs(journal, run));
    if (end !== null) {
      recordEnd(run, end, journal, { startedMs: Date.parse(run.started_at!), stopped: false });
      continue;
    }
    const profile = profileOf(run, journal.folder);
    if (profile?.metadata.status !== 'measured') {
      Object.assign(run, { outcome: 'interrupted', pid: null, job: null });
      continue;
    }
    Object.assign(run, {
      outcome: 'measured',
      pid: null,
      job: null,
      session_id: profile.metadata.session_id,
      duration_s: profile.metadata.duration_s,
      figures: memoryFigures(profile),
      issues: profile.metadata.issues.map((issue) => ({ severity: 'warning', ...issue })),
    });
  }
}

const profilePathOf = (run: SweepRun, folder: string): string | null =>
  run.output?.endsWith('.json') ? join(folder, run.output) : null;

function profileOf(run: SweepRun, folder: string): MemoryProfile | null {
  const path = profilePathOf(run, folder);
  return path === null ? null : readProfile(path);
}

/** @returns the reason that also prevents other runs */
async function executeWithRetries(
  run: SweepRun,
  journal: Journal,
  control: SweepControl,
): Promise<Obstacle | null> {
  const { sweep } = journal;
  Object.assign(run, { attempts: 0, failure: null, issues: [] });
  let obstacle: Obstacle | null = null;
  for (;;) {
    const diskFault = diskFailure(control.folders, sweep.protocol.min_free_bytes);
    if (diskFault) {
      Object.assign(run, { outcome: 'not_run', failure: diskFault });
      obstacle = diskObstacle(diskFault);
      break;
    }
    const memoryIssue = await control.gpus.waitForFreedMemory(control.signal);
    if (control.signal.aborted) {
      if (run.attempts > 0) run.outcome = 'interrupted';
      break;
    }
    await executeOnce(run, journal, control);
    if (memoryIssue) run.issues.unshift(memoryIssue);
    obstacle = obstacleOf(run);
    if (obstacle) {
      run.failure = obstacle.failure = { ...obstacle.failure, infrastructure: true };
      if (run.outcome === 'failed') Object.assign(run, { outcome: 'not_run', duration_s: null });
      break;
    }
    const shouldRetry = run.failure?.infrastructure === true && run.attempts <= sweep.protocol.retries;
    if (!shouldRetry || control.signal.aborted) break;
    control.onRun({ type: 'retry', run });
    writeJournal(journal);
    await sleep(retryPauseMs, null, { signal: control.signal }).catch(() => {});
  }
  writeJournal(journal);
  return obstacle;
}

/** A profile is named by the start time of its run; if the name is taken, by the next second that is free. */
function nameProfile(run: SweepRun, { sweep, folder }: Journal): void {
  for (let nextMs = Date.now(); ; nextMs += 1000) {
    const stamp = stampOf(new Date(nextMs));
    const output = stampedOutput(run, stamp);
    const isUsed =
      output !== null &&
      (existsSync(join(folder, output)) || sweep.runs.some((otherRun) => otherRun.output === output));
    if (!isUsed) return stampRun(run, stamp);
  }
}

const runLogs = (journal: Journal, { number }: SweepRun): RunRequest['logs'] => ({
  folder: logsFolder(journal),
  name: `run-${String(number).padStart(3, '0')}`,
});

async function executeOnce(run: SweepRun, journal: Journal, control: SweepControl): Promise<void> {
  const { sweep } = journal;
  nameProfile(run, journal);
  const startedMs = Date.now();
  const logs = runLogs(journal, run);
  Object.assign(run, {
    outcome: 'running',
    attempts: run.attempts + 1,
    started_at: new Date(startedMs).toISOString(),
    log: `sweep-${sweep.stamp}/${logs.name}.stderr.log`,
  });
  control.onRun({ type: 'start', run });
  // Written before the start, so that --resume finds the run if this sweep is killed.
  writeJournal(journal);
  const end = await control.execute({
    arguments: run.arguments,
    logs,
    timeoutMs: timeoutOf(journal),
    secrets: control.secrets,
    signal: control.signal,
    kill: control.kill,
    onStart: (started) => {
      Object.assign(run, started);
      writeJournal(journal);
    },
  });
  recordEnd(run, end, journal, { startedMs, stopped: control.signal.aborted });
}

const timeoutOf = ({ sweep }: Journal): number | null =>
  sweep.protocol.timeout_s === null ? null : sweep.protocol.timeout_s * 1000;

/** Records how a run ended. */
function recordEnd(
  run: SweepRun,
  end: RunEnd,
  journal: Journal,
  { startedMs, stopped }: { startedMs: number; stopped: boolean },
): void {
  const profilePath = profilePathOf(run, journal.folder);
  const written = profileOf(run, journal.folder);
  // A file of an earlier try is not a result of this one.
  const profile = written && Date.parse(written.metadata.timestamp) >= startedMs - 1000 ? written : null;
  // Without a requested dtype an engine uses its own: the embedded one computes in float32.
  if (profile?.model_info.dtype && !run.arguments.includes('--dtype'))
    run.parameters['dtype'] = profile.model_info.dtype;
  const outcome = readOutcome(end, { profilePath, profile, timeoutMs: timeoutOf(journal), stopped });
  const seconds = end.lost === null ? (end.end_ns - end.start_ns) / 1e9 : null;
  Object.assign(run, { ...outcome, started_at: end.startedAt, duration_s: seconds, pid: null, job: null });
}
