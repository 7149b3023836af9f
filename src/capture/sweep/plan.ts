import { createHash } from 'node:crypto';
import { basename, dirname } from 'node:path';
import type { SweepRun, SweepValue } from '../../model/documents/sweep.js';
import { profileName } from '../../model/result-names.js';

/** One planned run. */
export interface PlannedRun {
  /** Arguments after `inferscope`, without the output path. */
  arguments: string[];
  label: string;
  /** As typed; null if the command names none. */
  model: string | null;
  parameters: Record<string, SweepValue>;
  /** Kind of the command's output path; null if it writes none. */
  writes: 'profile' | 'folder' | null;
}

export interface SweepPlan {
  kind: 'memory' | 'grid';
  runs: PlannedRun[];
  /** Parameters that take more than one value. */
  varied: string[];
}

/** Key of the configuration alone: the same command has the same key in every sweep. */
export function runKey(args: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(args)).digest('hex').slice(0, 16);
}

/** Names that take more than one value among the runs, in the order of their first appearance. */
export function variedOf(runs: readonly Pick<PlannedRun, 'parameters'>[]): string[] {
  const names = [...new Set(runs.flatMap(({ parameters }) => Object.keys(parameters)))];
  return names.filter((name) => new Set(runs.map(({ parameters }) => parameters[name] ?? null)).size > 1);
}

/** The part of a model's name used in file names: `meta-llama/Llama-2-7b` → `llama-2-7b`. */
export function modelSlug(model: string): string {
  const trimmed = model.replace(/\/+$/, '');
  const file = /^config\.json$/i.test(basename(trimmed)) ? dirname(trimmed) : trimmed.replace(/\.gguf$/i, '');
  const slug = basename(file)
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .replaceAll(/^[-.]+|[-.]+$/g, '');
  return slug.slice(0, 80) || 'model';
}

/** Each configuration once, at its first position. */
export function withoutRepeats(plan: SweepPlan): SweepPlan {
  const seen = new Set<string>();
  const runs = plan.runs.filter((run) => {
    const key = runKey(run.arguments);
    return !seen.has(key) && seen.add(key);
  });
  return { ...plan, runs };
}

const threeDigits = (number: number): string => String(number).padStart(3, '0');

/** Placeholder in a profile's name until its run starts and sets the time stamp. */
const unstamped = '<stamp>';

/** Path of a run's results below the sweep's folder. */
export function outputOf(run: PlannedRun, number: number, stamp: string): string | null {
  if (run.writes === null) return null;
  return run.writes === 'profile'
    ? `memory-profiles/${profileName(run.model ?? 'model', unstamped)}`
    : `sweep-${stamp}/run-${threeDigits(number)}`;
}

/** The profile's path with this stamp; null if it has one already, or the run writes none. */
export function stampedOutput({ output }: Pick<SweepRun, 'output'>, stamp: string): string | null {
  return output?.includes(unstamped) ? output.replace(unstamped, stamp) : null;
}

/** Sets the profile path of a starting run, also in its command, where it is the last argument. */
export function stampRun(run: Pick<SweepRun, 'output' | 'arguments'>, stamp: string): void {
  const output = stampedOutput(run, stamp);
  if (output === null) return;
  run.output = output;
  run.arguments.push(run.arguments.pop()!.replace(unstamped, stamp));
}

/** A run that has not started. */
export function pendingRun(
  run: PlannedRun,
  { number, stamp, folder }: { number: number; stamp: string; folder: string },
): SweepRun {
  const output = outputOf(run, number, stamp);
  return {
    number,
    key: runKey(run.arguments),
    label: run.label,
    arguments: output === null ? run.arguments : [...run.arguments, '--output', `${folder}/${output}`],
    parameters: run.parameters,
    output,
    outcome: 'pending',
    attempts: 0,
    started_at: null,
    duration_s: null,
    exit_code: null,
    pid: null,
    job: null,
    failure: null,
    session_id: null,
    log: null,
    figures: [],
    issues: [],
    expected: {
      seconds: 0,
      basis: 'not estimated',
      memory_bytes: null,
      capacity_bytes: null,
      fits: null,
      why: 'not estimated',
    },
  };
}
