import type { StageResult } from '../model/documents/profile.js';
import type { MachineRoofline } from '../model/documents/roofline.js';
import type { UtilizationStage } from '../model/documents/utilization.js';
import { figure, mapFigure, missing } from '../model/figure.js';
import type { Session } from '../session/open.js';
import type { SessionDatabase } from '../session/query.js';
import { breakdown } from './breakdown.js';
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
 * Each stage compared with the limits of this machine: clean duration, necessary work, MFU and MBU (utilization/), and where the
 * profiled time went. Its bars are in the waterfalls.
 */
export async function stages(
  session: Session,
  database: SessionDatabase,
  roofline: MachineRoofline | null,
): Promise<StageResult[]> {
  const results: StageResult[] = [];
  const steps = await recordedStages(database, ['prefill', 'decode']);
  for (const used of await readRecordedUtilization(session, database)) {
    const { kind } = used;
    if (kind !== 'prefill' && kind !== 'decode') continue;
    const kindSteps = (list: RecordedStep[]) => list.filter((step) => step.kind === kind);
    const recorded = { clean: kindSteps(steps.clean), profiled: kindSteps(steps.profiled) };
    // A run that was stopped in its first repeat has no timed stages.
    if (recorded.clean.length > 0)
      results.push(await modelStage(session, database, { used: { ...used, kind }, recorded, roofline }));
  }
  const sampling = await recordedStages(database, ['sampling']);
  if (sampling.clean.length > 0) results.push(samplingStage(sampling));
  return results;
}

async function recordedStages(
  database: SessionDatabase,
  kinds: readonly StageResult['kind'][],
): Promise<Recorded> {
  const stepsOf = async (executionId: string) =>
    (await readRecordedSteps(database, executionId, { rank: 0, toIterationEnd: true, kinds })).filter(
      ({ launch }) => launch !== null,
    );
  return { clean: await stepsOf('clean'), profiled: await stepsOf('profiled') };
}

/** Mean of each timed repeat, so that a repeat counts once. */
const windows = (steps: readonly RecordedStep[]): Repeat[] =>
  meansBy(
    steps,
    ({ iteration }) => iteration,
    ({ launch, wall_ns }) => ({ launch: launch!, value: wall_ns / 1e6 }),
  );

async function modelStage(
  { manifest: { workload } }: Session,
  database: SessionDatabase,
  {
    used,
    recorded,
    roofline,
  }: {
    used: UtilizationStage & { kind: 'prefill' | 'decode' };
    recorded: Recorded;
    roofline: MachineRoofline | null;
  },
): Promise<StageResult> {
  const { kind, flops, bytes, batch_size: batch, new_tokens: tokens, context_tokens_sum: context } = used;
  const source =
    kind === 'decode' ? 'stages: start of a step to start of the next' : 'stages: the prefill call';
  const duration = meanOverLaunches(windows(recorded.clean), 'ms', source);
  const model = workload ? workloadModel(workload) : missing('no_model', 'no model');
  const set =
    'reason' in model || !batch || context === null ? null : workingSetBytes(model, batch, context / batch);
  const roof = roofline && set !== null ? bandwidthAt(roofline, set) : null;
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
        : mapFigure(flops, 'FLOP/B', 'FLOPs / bytes', (value) => value / (bytes.value ?? 0)),
    working_set_bytes: set === null ? bytes : figure(set, 'B', 'all weights and the KV cache'),
    bandwidth_bytes_per_s: used.peak_bandwidth_bytes_per_s,
    bandwidth_level: roof?.level ?? null,
    mfu: used.mfu,
    mbu: used.mbu,
    bound: used.bound,
    roofline_ms: used.roof_ms,
    breakdown: await breakdown(
      database,
      kind,
      used.work,
      roofline && roof && { peaks: computePeaks(roofline), bytesPerS: roof.bytesPerS },
    ),
  };
}

/** Overhead over the decode steps that both have, because the profiled execution may have generated fewer tokens. */
function overhead({ clean, profiled }: Recorded): Pick<StageResult, 'profiled_ms' | 'profiler_overhead_ms'> {
  if (profiled.length === 0) {
    const none = missing('not_profiled', 'the run stopped before its profiled pass');
    return { profiled_ms: none, profiler_overhead_ms: none };
  }
  const last = Math.max(...profiled.map(({ step_index }) => step_index ?? 0));
  const sameSteps = clean.filter(({ step_index }) => (step_index ?? 0) <= last);
  const under = meanOverLaunches(windows(profiled), 'ms', 'the same in the profiled execution');
  const without = meanOverLaunches(windows(sameSteps), 'ms', 'clean');
  return {
    profiled_ms: under,
    profiler_overhead_ms:
      without.value === null
        ? without
        : mapFigure(under, 'ms', 'profiled − clean, same steps', (ms) => ms - (without.value ?? 0)),
  };
}

function samplingStage(recorded: Recorded): StageResult {
  const none = missing('host_stage', 'sampling runs on the host, outside the model');
  const duration = meanOverLaunches(windows(recorded.clean), 'ms', 'stages: argmax over the logits');
  return {
    kind: 'sampling',
    instances: recorded.clean.length,
    duration_ms: duration,
    tokens_per_s: none,
    ...overhead(recorded),
    flops: none,
    bytes: none,
    intensity_flop_per_byte: none,
    working_set_bytes: none,
    bandwidth_bytes_per_s: none,
    bandwidth_level: null,
    mfu: none,
    mbu: none,
    bound: null,
    roofline_ms: none,
    breakdown: null,
  };
}
