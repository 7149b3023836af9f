import type { StageResult } from '../model/documents/profile.js';
import type { MachineRoofline } from '../model/documents/roofline.js';
import type { UtilizationStage } from '../model/documents/utilization.js';
import { figure, mapFigure, missing } from '../model/figure.js';
import type { Session } from '../session/open.js';
import type { SessionDatabase } from '../session/query.js';
import { readBreakdown } from './breakdown.js';
import { workloadModel } from './model-work.js';
import { bandwidthAt, computePeaks } from './roofs.js';
import { meanOverLaunches, meansBy, type Repeat } from './statistics.js';
import { workingSetBytes } from './utilization/stage.js';
import { readRecordedSteps, type RecordedStep } from './utilization/steps.js';
import { readRecordedUtilization } from './utilization/utilization.js';

/** Timed stages of the two executions, from completed repeats. */
interface Recorded {
  clean: RecordedStep[];
  profiled: RecordedStep[];
}

/**
 * Each stage compared with the limits of this machine: clean duration, necessary work, MFU and MBU (utilization/), and
 * the breakdown of its profiled time. Its bars are in the waterfalls.
 */
export async function readStages(
  session: Session,
  database: SessionDatabase,
  roofline: MachineRoofline | null,
): Promise<StageResult[]> {
  const results: StageResult[] = [];
  const steps = await readStageSteps(database, ['prefill', 'decode']);
  for (const utilization of await readRecordedUtilization(session, database)) {
    const { kind } = utilization;
    if (kind !== 'prefill' && kind !== 'decode') continue;
    const kindSteps = (list: RecordedStep[]) => list.filter((step) => step.kind === kind);
    const recorded = { clean: kindSteps(steps.clean), profiled: kindSteps(steps.profiled) };
    // A run that was stopped in its first repeat has no timed stages.
    if (recorded.clean.length > 0)
      results.push(
        await modelStage(session, database, { utilization: { ...utilization, kind }, recorded, roofline }),
      );
  }
  const sampling = await readStageSteps(database, ['sampling']);
  if (sampling.clean.length > 0) results.push(samplingStage(sampling));
  return results;
}

async function readStageSteps(
  database: SessionDatabase,
  kinds: readonly StageResult['kind'][],
): Promise<Recorded> {
  const readTimedSteps = async (executionId: string) =>
    (await readRecordedSteps(database, executionId, { rank: 0, toIterationEnd: true, kinds })).filter(
      ({ launch }) => launch !== null,
    );
  return { clean: await readTimedSteps('clean'), profiled: await readTimedSteps('profiled') };
}

/** Mean of each timed repeat, so that a repeat counts once. */
const repeatsOf = (steps: readonly RecordedStep[]): Repeat[] =>
  meansBy(
    steps,
    ({ iteration }) => iteration,
    ({ launch, wall_ns }) => ({ launch: launch!, value: wall_ns / 1e6 }),
  );

async function modelStage(
  { manifest: { workload } }: Session,
  database: SessionDatabase,
  {
    utilization,
    recorded,
    roofline,
  }: {
    utilization: UtilizationStage & { kind: 'prefill' | 'decode' };
    recorded: Recorded;
    roofline: MachineRoofline | null;
  },
): Promise<StageResult> {
  const {
    kind,
    flops,
    bytes,
    batch_size: batch,
    new_tokens: tokens,
    context_tokens_sum: context,
  } = utilization;
  const source =
    kind === 'decode' ? 'stages: start of a step to start of the next' : 'stages: the prefill call';
  const duration = meanOverLaunches(repeatsOf(recorded.clean), 'ms', source);
  const model = workload ? workloadModel(workload) : missing('no_model', 'no model');
  const workingSet =
    'reason' in model || !batch || context === null ? null : workingSetBytes(model, batch, context / batch);
  const roof = roofline && workingSet !== null ? bandwidthAt(roofline, workingSet) : null;
  return {
    kind,
    instances: recorded.clean.length,
    duration_ms: duration,
    tokens_per_s: mapFigure(
      duration,
      'tok/s',
      'tokens computed / duration',
      (ms) => (1e3 * (tokens ?? 0)) / ms,
    ),
    ...overhead(recorded),
    flops,
    bytes,
    intensity_flop_per_byte:
      bytes.value === null
        ? bytes
        : mapFigure(flops, 'FLOP/byte', 'FLOPs / bytes', (value) => value / (bytes.value ?? 0)),
    working_set_bytes: workingSet === null ? bytes : figure(workingSet, 'B', 'all weights and the KV cache'),
    bandwidth_bytes_per_s: utilization.peak_bandwidth_bytes_per_s,
    bandwidth_level: roof?.level ?? null,
    mfu: utilization.mfu,
    mbu: utilization.mbu,
    bound: utilization.bound,
    roofline_ms: utilization.roof_ms,
    breakdown: await readBreakdown(
      database,
      kind,
      utilization.work,
      roofline && roof && { peaks: computePeaks(roofline), bytesPerS: roof.bytesPerS },
    ),
  };
}

/** Overhead over the decode steps that both have, because the profiled execution may have generated fewer tokens. */
function overhead({ clean, profiled }: Recorded): Pick<StageResult, 'profiled_ms' | 'profiler_overhead_ms'> {
  if (profiled.length === 0) {
    const noProfiledPass = missing('not_profiled', 'the run stopped before its profiled pass');
    return { profiled_ms: noProfiledPass, profiler_overhead_ms: noProfiledPass };
  }
  const lastStep = Math.max(...profiled.map(({ step_index }) => step_index ?? 0));
  const sameSteps = clean.filter(({ step_index }) => (step_index ?? 0) <= lastStep);
  const profiledMean = meanOverLaunches(repeatsOf(profiled), 'ms', 'the same in the profiled execution');
  const cleanMean = meanOverLaunches(repeatsOf(sameSteps), 'ms', 'clean');
  return {
    profiled_ms: profiledMean,
    profiler_overhead_ms:
      cleanMean.value === null
        ? cleanMean
        : mapFigure(profiledMean, 'ms', 'profiled − clean, same steps', (ms) => ms - (cleanMean.value ?? 0)),
  };
}

function samplingStage(recorded: Recorded): StageResult {
  const noModelWork = missing('host_stage', 'sampling runs on the host, outside the model');
  const duration = meanOverLaunches(repeatsOf(recorded.clean), 'ms', 'stages: argmax over the logits');
  return {
    kind: 'sampling',
    instances: recorded.clean.length,
    duration_ms: duration,
    tokens_per_s: noModelWork,
    ...overhead(recorded),
    flops: noModelWork,
    bytes: noModelWork,
    intensity_flop_per_byte: noModelWork,
    working_set_bytes: noModelWork,
    bandwidth_bytes_per_s: noModelWork,
    bandwidth_level: null,
    mfu: noModelWork,
    mbu: noModelWork,
    bound: null,
    roofline_ms: noModelWork,
    breakdown: null,
  };
}
