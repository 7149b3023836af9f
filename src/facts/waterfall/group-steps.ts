import { stepKindsSql } from '../../model/record.js';
import type { Session } from '../../session/open.js';
import { makeKnownSizes, sizeColumns } from '../trace/known-sizes.js';
import type { TraceScope } from '../trace/scope.js';
import {
  type RunSizes,
  type SizedStep,
  readTracedSteps,
  runSizesOf,
  withSizes,
} from '../utilization/sizes.js';
import type { Step } from '../utilization/steps.js';
import type { PartStep } from './group-needs.js';
import type { StageGroup } from './stage-group.js';

export const runSizesLabel = "the run's sizes";

/** Steps with sizes, by the kind of instance they belong to. */
export interface GroupSteps {
  /** Prefill, decode and mixed steps outside of the warm-up. */
  steps: SizedStep[];
  requests: PartStep[];
  warmup: PartStep[];
  /** Mean number of sequences sampled; null if not recorded. */
  sampledSequences: number | null;
}

/** Steps with sizes of all stages that have a waterfall. */
export async function groupSteps(
  session: Session,
  scope: TraceScope,
  groups: readonly StageGroup[],
): Promise<GroupSteps> {
  const { database } = scope;
  await scope.need('request_parts', 'inner_windows');
  const hasGroup = (key: string) => groups.some((group) => group.key === key);
  const run = runSizesOf(session.manifest.workload, runSizesLabel);
  const steps = (await readTracedSteps(scope)).map((step) => withSizes(step, run));
  const byStage = new Map(steps.map((step) => [step.stage_id, step]));
  const parts = hasGroup('request')
    ? await database.query<{ request_id: number; stage_id: number }>(
        'SELECT request_id, stage_id FROM request_parts WHERE stage_id > 0',
      )
    : [];
  const requests = parts.flatMap(({ request_id, stage_id }): PartStep[] => {
    const step = byStage.get(stage_id);
    return step ? [{ ...step, instance: request_id }] : [];
  });
  if (hasGroup('warmup')) await makeKnownSizes(scope);
  const warmupRows = hasGroup('warmup')
    ? await database.query<Step & { instance: number }>(
        `SELECT s.stage_id, s.step_id AS instance, 0 AS pid, s.kind, NULL AS point, s.iteration, s.step_index, (s.end_ns - s.start_ns)::DOUBLE AS wall_ns,
                ${sizeColumns}
         FROM phase_stages s LEFT JOIN known_sizes k USING (stage_id)
         WHERE s.phase = 'warmup' AND s.kind IN ${stepKindsSql} ORDER BY s.start_ns, s.stage_id`,
      )
    : [];
  const warmup = warmupRows.map((step) => ({
    ...withSizes(step, run),
    instance: step.instance,
  }));
  const sampledSequences = hasGroup('sampling') ? await meanSampledSequences(scope, byStage, run) : null;
  return { steps, requests, warmup, sampledSequences };
}

/** Sizes come from the sampling ranges, else from the step around or before them, else from the run. */
async function meanSampledSequences(
  { database }: TraceScope,
  byStage: ReadonlyMap<number, SizedStep>,
  run: RunSizes,
): Promise<number | null> {
  const rows = await database.query<{ step_id: number; batch_size: number | null; n: number }>(
    `SELECT s.step_id, s.batch_size, count(*) AS n FROM inner_windows w JOIN phase_stages s USING (stage_id)
     WHERE w.grp = 'sampling' GROUP BY ALL`,
  );
  let sequences = 0;
  let n = 0;
  for (const row of rows) {
    const batch = row.batch_size ?? byStage.get(row.step_id)?.batch_size ?? run.batch_size;
    if (batch === null) return null;
    sequences += batch * row.n;
    n += row.n;
  }
  return n > 0 ? sequences / n : null;
}

/** Mean number of sequences per step; null if a step has no recorded number. */
export function meanSequences(steps: readonly Pick<SizedStep, 'batch_size'>[]): number | null {
  const sizes = steps.flatMap(({ batch_size: batch }) => batch ?? []);
  if (sizes.length === 0 || sizes.length < steps.length) return null;
  return sizes.reduce((sum, size) => sum + size, 0) / sizes.length;
}

/** Mean number of sequences per step or sampling of a group; null if not recorded, or if its instances are not single steps. */
export const sequencesOfGroup = (
  { kind }: Pick<StageGroup, 'kind'>,
  { steps, sampledSequences }: Pick<GroupSteps, 'steps' | 'sampledSequences'>,
): number | null =>
  kind === 'sampling' ? sampledSequences : meanSequences(steps.filter((step) => step.kind === kind));
