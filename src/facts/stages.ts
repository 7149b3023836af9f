import type { StageResult } from '../model/documents/profile.js';
import type { MachineRoofline } from '../model/documents/roofline.js';
import type { UtilizationStage } from '../model/documents/utilization.js';
import { figure, mapFigure, missing } from '../model/figure.js';
import { mean } from '../model/statistics.js';
import type { Session } from '../session/open.js';
import type { SessionDatabase } from '../session/query.js';
import { breakdown } from './breakdown.js';
import { workloadModel } from './model-work.js';
import { bandwidthAt, computePeaks } from './roofs.js';
import { meanOverLaunches, type Repeat } from './statistics.js';
import { decodeSteps } from './steps.js';
import { workingSetBytes } from './utilization/stage.js';
import { recordedUtilization } from './utilization/utilization.js';

/** Durations of one kind of stage: means of each timed iteration, so that a repeat counts once. */
interface Durations {
  instances: number;
  windows: Repeat[];
}

/**
 * Each stage against what this machine allows: clean duration, necessary work, MFU and MBU (utilization/), and where the
 * profiled time went. Its bars are in the waterfalls.
 */
export async function stages(
  session: Session,
  database: SessionDatabase,
  roofline: MachineRoofline | null,
): Promise<StageResult[]> {
  const results: StageResult[] = [];
  for (const used of await recordedUtilization(session, database)) {
    const { kind } = used;
    if (kind !== 'prefill' && kind !== 'decode') continue;
    const clean = await durations(database, 'clean', kind, null);
    // Of a run that was stopped within its first repeat nothing is timed.
    if (clean.instances > 0)
      results.push(await modelStage(session, database, { used: { ...used, kind }, clean, roofline }));
  }
  const sampling = await durations(database, 'clean', 'sampling', null);
  if (sampling.instances > 0) results.push(await samplingStage(database, sampling));
  return results;
}

async function durations(
  database: SessionDatabase,
  executionId: 'clean' | 'profiled',
  kind: StageResult['kind'],
  maxStep: number | null,
): Promise<Durations> {
  if (kind === 'decode') {
    const all = await decodeSteps(database, executionId);
    const steps = maxStep === null ? all : all.filter((step) => step.step_index <= maxStep);
    const iterations = [...new Set(steps.map((step) => step.iteration))];
    return {
      instances: steps.length,
      windows: iterations.map((iteration) => {
        const own = steps.filter((step) => step.iteration === iteration);
        return { launch: own[0]!.launch, value: mean(own.map((step) => step.period_ms)) };
      }),
    };
  }
  const rows = await database.query<{ launch: number; ms: number; instances: number }>(
    `SELECT i.launch, avg(s.end_ns - s.start_ns) / 1e6 AS ms, count(*) AS instances
     FROM stages s JOIN iterations i ON i.execution_id = s.execution_id AND i.pid = s.pid AND i.iteration = s.iteration
     WHERE s.execution_id = $1 AND s.kind = $2 AND NOT s.warmup
     GROUP BY i.launch, s.pid, s.iteration ORDER BY s.iteration`,
    [executionId, kind],
  );
  return {
    instances: rows.reduce((sum, row) => sum + row.instances, 0),
    windows: rows.map((row) => ({ launch: row.launch, value: row.ms })),
  };
}

async function modelStage(
  { manifest: { workload } }: Session,
  database: SessionDatabase,
  {
    used,
    clean,
    roofline,
  }: {
    used: UtilizationStage & { kind: 'prefill' | 'decode' };
    clean: Durations;
    roofline: MachineRoofline | null;
  },
): Promise<StageResult> {
  const { kind, flops, bytes, batch_size: batch, new_tokens: tokens, context_tokens_sum: context } = used;
  const source =
    kind === 'decode' ? 'stages: start of a step to start of the next' : 'stages: the prefill call';
  const duration = meanOverLaunches(clean.windows, 'ms', source);
  const model = workload ? workloadModel(workload) : missing('no_model', 'no model');
  const set =
    'reason' in model || !batch || context === null ? null : workingSetBytes(model, batch, context / batch);
  const roof = roofline && set !== null ? bandwidthAt(roofline, set) : null;
  const maxStep = await lastProfiledStep(database, kind);
  const profiled = await durations(database, 'profiled', kind, null);
  const comparable = maxStep === null ? clean : await durations(database, 'clean', kind, maxStep);
  return {
    kind,
    instances: clean.instances,
    duration_ms: duration,
    tokens_per_s: mapFigure(
      duration,
      'tok/s',
      'tokens computed / duration',
      (ms) => (1e3 * (tokens ?? 0)) / ms,
    ),
    ...overhead(profiled, comparable),
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

/** Last decode step that was profiled, where the profiled execution generated fewer tokens than the clean one. */
async function lastProfiledStep(database: SessionDatabase, kind: string): Promise<number | null> {
  const [row] = await database.query<{ last: number | null }>(
    `SELECT max(step_index) AS last FROM stages WHERE execution_id = 'profiled' AND kind = $1 AND NOT warmup`,
    [kind],
  );
  return row?.last ?? null;
}

function overhead(
  profiled: Durations,
  clean: Durations,
): Pick<StageResult, 'profiled_ms' | 'profiler_overhead_ms'> {
  if (profiled.instances === 0) {
    const none = missing('not_profiled', 'the run ended before its profiled pass');
    return { profiled_ms: none, profiler_overhead_ms: none };
  }
  const under = meanOverLaunches(profiled.windows, 'ms', 'the same in the profiled execution');
  const without = meanOverLaunches(clean.windows, 'ms', 'clean');
  return {
    profiled_ms: under,
    profiler_overhead_ms:
      without.value === null
        ? without
        : mapFigure(under, 'ms', 'profiled − clean, same steps', (ms) => ms - (without.value ?? 0)),
  };
}

async function samplingStage(database: SessionDatabase, clean: Durations): Promise<StageResult> {
  const none = missing('host_stage', 'sampling runs on the host, outside the model');
  const duration = meanOverLaunches(clean.windows, 'ms', 'stages: argmax over the logits');
  return {
    kind: 'sampling',
    instances: clean.instances,
    duration_ms: duration,
    tokens_per_s: none,
    ...overhead(await durations(database, 'profiled', 'sampling', null), clean),
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
