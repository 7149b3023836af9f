import { rooflineTime } from '../llm/roofline-time.js';
import { arithmeticIntensity, mbu, mfuOfWork } from '../llm/utilization.js';
import { totalWork, type Work } from '../llm/work-totals.js';
import type { StageResult } from '../model/documents/profile.js';
import type { MachineRoofline } from '../model/documents/roofline.js';
import { figure, mapFigure, missing, type Figure, type MissingFigure } from '../model/figure.js';
import type { Workload } from '../model/manifest.js';
import type { SessionDatabase } from '../session/query.js';
import { breakdown } from './breakdown.js';
import { necessaryOps, workloadModel, type WorkloadModel } from './model-work.js';
import { bandwidthAt, computePeaks } from './roofs.js';
import { meanOverLaunches, type Repeat } from './statistics.js';
import { decodeSteps } from './steps.js';
import { workingSetBytes } from './utilization/stage.js';

/** Durations of one kind of stage: means of each timed iteration, so that a repeat counts once. */
interface Durations {
  instances: number;
  windows: Repeat[];
  callMs: number | null;
  contextTokens: number;
}

/**
 * Each stage against what this machine allows: clean duration, necessary work, MFU and MBU, and where the profiled time
 * went. Its bars are in the waterfalls.
 */
export async function stages(
  database: SessionDatabase,
  workload: Workload,
  roofline: MachineRoofline | null,
): Promise<StageResult[]> {
  const model = workloadModel(workload);
  const results: StageResult[] = [];
  for (const kind of ['prefill', 'decode'] as const) {
    const clean = await durations(database, 'clean', kind, null);
    if (clean.instances === 0) continue;
    results.push(await modelStage(database, workload, kind, clean, model, roofline));
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
    const average = (of: typeof steps, value: (step: (typeof steps)[number]) => number) =>
      of.reduce((sum, step) => sum + value(step), 0) / of.length;
    return {
      instances: steps.length,
      windows: iterations.map((iteration) => {
        const own = steps.filter((step) => step.iteration === iteration);
        return { launch: own[0]!.launch, value: average(own, (step) => step.period_ms) };
      }),
      callMs: steps.length > 0 ? average(steps, (step) => step.call_ms) : null,
      contextTokens: steps.length > 0 ? average(steps, (step) => step.context_tokens_sum) : 0,
    };
  }
  const rows = await database.query<{ launch: number; ms: number; instances: number; context: number }>(
    `SELECT i.launch, avg(s.end_ns - s.start_ns) / 1e6 AS ms, count(*) AS instances,
            avg(s.context_tokens_sum) AS context
     FROM stages s JOIN iterations i ON i.execution_id = s.execution_id AND i.pid = s.pid AND i.iteration = s.iteration
     WHERE s.execution_id = $1 AND s.kind = $2 AND NOT s.warmup
     GROUP BY i.launch, s.pid, s.iteration ORDER BY s.iteration`,
    [executionId, kind],
  );
  const windows = rows.map((row) => ({ launch: row.launch, value: row.ms }));
  return {
    instances: rows.reduce((sum, row) => sum + row.instances, 0),
    windows,
    callMs: rows.length > 0 ? windows.reduce((sum, row) => sum + row.value, 0) / rows.length : null,
    contextTokens: rows[0]?.context ?? 0,
  };
}

async function modelStage(
  database: SessionDatabase,
  workload: Workload,
  kind: 'prefill' | 'decode',
  clean: Durations,
  model: WorkloadModel | MissingFigure,
  roofline: MachineRoofline | null,
): Promise<StageResult> {
  const source =
    kind === 'decode' ? 'stages: start of a step to start of the next' : 'stages: the prefill call';
  const duration = meanOverLaunches(clean.windows, 'ms', source);
  const batch = workload.batch_size ?? 1;
  const newTokens = kind === 'prefill' ? (workload.input_len ?? 0) : 1;
  const known = 'architecture' in model;
  const contextTokens = clean.contextTokens / batch - newTokens;
  const ops = known ? necessaryOps(model, { phase: kind, batchSize: batch, newTokens, contextTokens }) : [];
  const work = known ? totalWork(ops) : null;
  const workingSet = known ? workingSetBytes(model, batch, contextTokens + newTokens) : null;
  const roof = roofline && workingSet !== null ? bandwidthAt(roofline, workingSet) : null;
  const peaks = roofline ? computePeaks(roofline) : {};
  const parts = await breakdown(database, kind, ops, roof && { peaks, bytesPerS: roof.bytesPerS });
  const limit = roof ? rooflineTime(ops, peaks, roof.bytesPerS) : noRoofline;
  const rooflineFigure: Figure =
    'bound' in limit
      ? figure(limit.roofline_s * 1e3, 'ms', 'max(Σ FLOPs / peak FLOP/s, Σ bytes / bandwidth)')
      : limit;
  const seconds = (duration.value ?? 0) / 1e3;
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
      (ms) => (1e3 * batch * newTokens) / ms,
    ),
    ...overhead(profiled, comparable),
    ...workFigures(work, known ? null : model),
    working_set_bytes:
      workingSet === null ? unknownWork(model) : figure(workingSet, 'B', 'all weights and the KV cache'),
    bandwidth_bytes_per_s: roof
      ? figure(roof.bytesPerS, 'B/s', `measured at this working set (${roof.level})`)
      : roofline
        ? unknownWork(model)
        : noRoofline,
    bandwidth_level: roof?.level ?? null,
    mfu: work ? mfuOfWork(work, seconds, peaks) : unknownWork(model),
    mbu: work ? mbu(work.bytes_total, seconds, roof?.bytesPerS ?? null) : unknownWork(model),
    bound: 'bound' in limit ? limit.bound : null,
    roofline_ms: rooflineFigure,
    breakdown: parts,
  };
}

const noRoofline = missing('no_roofline', "this machine's roofline was not measured");

function unknownWork(model: WorkloadModel | MissingFigure): MissingFigure {
  return 'architecture' in model ? missing('no_work', 'the stage has no necessary work') : model;
}

function workFigures(
  work: Work | null,
  reason: MissingFigure | null,
): Pick<StageResult, 'flops' | 'bytes' | 'intensity_flop_per_byte'> {
  if (!work) {
    const none = reason ?? missing('no_model', 'no model');
    return { flops: none, bytes: none, intensity_flop_per_byte: none };
  }
  const source = 'model arithmetic, necessary operations (docs/llm-arithmetic.md)';
  return {
    flops: figure(work.flops, 'FLOP', source),
    bytes: figure(work.bytes_total, 'B', source),
    intensity_flop_per_byte: figure(
      arithmeticIntensity(work.flops, work.bytes_total),
      'FLOP/B',
      'FLOPs / bytes',
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
