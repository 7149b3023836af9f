import type { Issue } from '../../model/document.js';
import { stepKinds } from '../../model/record.js';
import type { PhaseKind } from '../../model/documents/trace.js';
import { percentile } from '../../model/statistics.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { plural } from '../../vocabulary/format.js';
import { quantity, sentence } from '../../vocabulary/sentence-template.js';
import { makeStageSizes, sizeColumns } from '../trace/known-sizes.js';

/**
 * A step, or another timed stage, with its time and its sizes, which are over the batch and null if neither reported nor
 * inferred (makeStageSizes).
 */
export interface Step {
  stage_id: number;
  /** Process; utilization and clean times of a trace count it as the launch in their intervals. */
  pid: number;
  kind: PhaseKind;
  point: string | null;
  iteration: number | null;
  step_index: number | null;
  wall_ns: number;
  batch_size: number | null;
  new_tokens: number | null;
  context_tokens_sum: number | null;
  /** Tokens per sequence of the encoder's output, if the model has an encoder; null if not known. */
  source_tokens?: number | null;
  /** Sources of the sizes; null without sizes. */
  sizes_from: string | null;
  /** Number of steps of this kind in the capture. */
  steps_here: number | null;
  /** Number of steps in the capture that has sizes, where it differs and they could not be matched; otherwise null. */
  steps_elsewhere: number | null;
}

/** A step recorded by the engine. */
export interface RecordedStep extends Step {
  /** Process launch; null without an iteration, or if its repeat did not complete. */
  launch: number | null;
  /** Time between device events around the step; null if the engine records none. */
  device_ms: number | null;
  /** Whether `wall_ns` is between device events. */
  by_device: boolean;
}

const isLastSql = 'next_ns IS NULL OR next_iteration IS DISTINCT FROM s.iteration';
const isFollowedSql = `s.kind IN ('decode', 'mixed') AND next_kind IN ('decode', 'mixed') AND NOT (${isLastSql})`;

/** Steps of models, and calls of modules without tokens that hooks recorded. */
export const callKinds = [...stepKinds, 'other'] as const satisfies readonly PhaseKind[];

/**
 * Timed steps of an execution in order, by device events if the program's hooks recorded them, else by host ranges. A
 * decode or mixed step that is followed by another one in its thread and iteration runs from its start to the start of that
 * one; other steps run to their own end (docs/concepts/stages-and-clocks.md).
 * @param rank null: stages without a rank; 0: also these
 * @param toIterationEnd a decode step on the host clock that is the last step of its iteration runs to the end of the
 *   iteration, if `iterations` has it
 * @param kinds stages that are read; other ones are not seen as following
 * @returns without interrupted steps (interruptedStepIssues)
 */
export async function readRecordedSteps(
  database: SessionDatabase,
  executionId: string,
  choice: StepChoice = {},
): Promise<RecordedStep[]> {
  const steps = await readAllSteps(database, executionId, choice);
  const left = new Set(interruptedAmong(steps).flatMap(({ interrupted }) => interrupted));
  return steps.filter((step) => !left.has(step));
}

interface StepChoice {
  rank?: number | null;
  toIterationEnd?: boolean;
  kinds?: readonly PhaseKind[];
}

async function readAllSteps(
  database: SessionDatabase,
  executionId: string,
  { rank = null, toIterationEnd = false, kinds = stepKinds }: StepChoice,
): Promise<RecordedStep[]> {
  await makeStageSizes(database);
  return database.query<RecordedStep>(
    `WITH step_rows AS (
       SELECT *, lead(start_ns) OVER thread AS next_ns, lead(kind) OVER thread AS next_kind,
              lead(iteration) OVER thread AS next_iteration, lead(device_start_ns) OVER thread AS next_device_ns,
              device_start_ns IS NOT NULL AND device_dur_ns IS NOT NULL AS by_device
       FROM stages WHERE execution_id = $1 AND NOT coalesce(warmup, false) AND kind IN (${kinds.map((kind) => `'${kind}'`).join(', ')}) AND (kind <> 'other' OR raw_name LIKE 'inferscope:other:%')
         AND ${rank === null ? 'rank IS NULL' : `coalesce(rank, 0) = ${rank}`}
       WINDOW thread AS (PARTITION BY pid, tid ORDER BY start_ns))
     SELECT s.stage_id, s.pid, s.kind, i.point, s.iteration, s.step_index, ${sizeColumns}, i.launch, s.device_dur_ns / 1e6 AS device_ms, by_device,
            CASE WHEN by_device THEN CASE WHEN ${isFollowedSql} THEN coalesce(next_device_ns - s.device_start_ns, s.device_dur_ns) ELSE s.device_dur_ns END
                 WHEN ${isFollowedSql} THEN next_ns - s.start_ns
                 WHEN ${toIterationEnd} AND s.kind = 'decode' AND (${isLastSql}) THEN coalesce(i.end_ns, s.end_ns) - s.start_ns
                 ELSE s.end_ns - s.start_ns END AS wall_ns
     FROM step_rows s LEFT JOIN stage_sizes k USING (execution_id, capture_id, stage_id)
     LEFT JOIN (SELECT pid, iteration, any_value(point) AS point, any_value(launch) AS launch, max(end_ns) AS end_ns FROM iterations
       WHERE execution_id = $1 GROUP BY ALL) i ON i.pid = s.pid AND i.iteration = s.iteration
     ORDER BY s.pid, s.start_ns`,
    [executionId],
  );
}

/** An interrupted decode step takes ten times the median of its batch size or more, and at most one in 50 does. */
const [interruptedMedians, maxInterruptedShare] = [10, 0.02];

/** Decode steps of one batch size that were interrupted, and the median of all of them. */
interface Interrupted {
  interrupted: RecordedStep[];
  of: number;
  medianNs: number;
}

/**
 * Decode steps that something outside of the program interrupted: a mean over a hundred steps with one of 100 times the
 * median is the time of no step. Steps of other kinds differ in size, and may take ten times the median for a reason.
 */
function interruptedAmong(steps: readonly RecordedStep[]): Interrupted[] {
  const groups = new Map<string, RecordedStep[]>();
  for (const step of steps) {
    if (step.kind !== 'decode') continue;
    const key = JSON.stringify([step.batch_size, step.point]);
    const group = groups.get(key);
    if (group) group.push(step);
    else groups.set(key, [step]);
  }
  return [...groups.values()].flatMap((group) => {
    const medianNs = percentile(
      group.map(({ wall_ns }) => wall_ns).toSorted((a, b) => a - b),
      0.5,
    );
    const interrupted = group.filter(({ wall_ns }) => wall_ns >= interruptedMedians * medianNs);
    const isRare = interrupted.length <= maxInterruptedShare * group.length;
    return interrupted.length > 0 && isRare ? { interrupted, of: group.length, medianNs } : [];
  });
}

/** Warnings about the interrupted steps of executions without a profiler, which readRecordedSteps leaves out. */
export async function interruptedStepIssues(
  { manifest }: Pick<Session, 'manifest'>,
  database: SessionDatabase,
): Promise<Issue[]> {
  const clean = manifest.executions.filter(({ purpose }) => purpose === 'clean');
  const issues: Issue[] = [];
  for (const { execution_id } of clean) {
    const steps = await readAllSteps(database, execution_id, { rank: 0, toIterationEnd: true });
    for (const { interrupted, of, medianNs } of interruptedAmong(steps)) {
      const longest = quantity(Math.max(...interrupted.map(({ wall_ns }) => wall_ns)) / 1e6, 'ms');
      const median = quantity(medianNs / 1e6, 'ms');
      issues.push({
        code: 'interrupted_steps',
        severity: 'warning',
        ...(interrupted.length === 1
          ? sentence`Without a profiler 1 of ${plural(of, 'decode step')} took ${longest}, the median is ${median}: means leave out steps of ten medians and more.`
          : sentence`Without a profiler ${interrupted.length} of ${plural(of, 'decode step')} took up to ${longest}, the median is ${median}: means leave out steps of ten medians and more.`),
      });
    }
  }
  return issues;
}

/** Decode steps of completed repeats, on the first rank. */
export async function readDecodeSteps(
  database: SessionDatabase,
  executionId: string,
): Promise<(RecordedStep & { launch: number; step_index: number })[]> {
  const steps = await readRecordedSteps(database, executionId, { rank: 0, toIterationEnd: true });
  return steps.flatMap((step) => {
    const { kind, launch, step_index } = step;
    return kind === 'decode' && launch !== null && step_index !== null
      ? [{ ...step, launch, step_index }]
      : [];
  });
}
