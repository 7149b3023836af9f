import type { StageResult } from '../../model/documents/profile.js';
import type { StageWaterfall, WaterfallBar } from '../../model/documents/explain.js';
import type { MachineRoofline } from '../../model/documents/roofline.js';
import type { Workload } from '../../model/manifest.js';
import type { SessionDatabase } from '../../session/query.js';
import { missing } from '../../model/figure.js';
import { workloadModel } from '../model-work.js';
import { stages } from '../stages.js';
import { composedStage, loadStage, repeatsOf } from './composed-stages.js';
import { figureOfNeed, necessaryOfSampling } from './group-needs.js';
import { barWords } from './words.js';

/**
 * Waterfalls of a `profile` session of the embedded engine: its bars as bars.ts reckons them, W of the clean execution,
 * operators of the profiled one.
 */
export async function profileWaterfalls(
  database: SessionDatabase,
  workload: Workload,
  roofline: MachineRoofline | null,
): Promise<{ stages: StageWaterfall[]; without: { stage: string; reason: string }[] }> {
  const all = await stages(database, workload, roofline);
  const found = all.filter(({ kind }) => kind !== 'sampling');
  const quantiles = await quantilesOf(database);
  const steps = found
    .filter(({ bars }) => bars.length > 0)
    .map((stage) => ({ ...waterfallOf(stage), ...quantiles.get(stage.kind) }));
  const [prefill, decode] = (['prefill', 'decode'] as const).map((kind) =>
    steps.find((stage) => stage.kind === kind),
  );
  const more: (StageWaterfall | null)[] = [];
  for (const kind of ['request', 'warmup'] as const) {
    const repeats = prefill
      ? await repeatsOf(database, { executionId: 'clean', point: null, warmup: kind === 'warmup' })
      : null;
    // Bars of a request are those of its stages: without a decode step's they would not be whole.
    if (prefill && repeats && (decode || repeats.steps === 0)) {
      more.push(composedStage(kind, repeats, { prefill, decode: decode ?? null }));
    }
  }
  const sampling = all.find(({ kind }) => kind === 'sampling');
  if (sampling) more.push(samplingOf(sampling, found, workload));
  more.push(await loadStage(database, 'clean', 'profile'));
  return {
    stages: [...steps, ...more.filter((stage) => stage !== null)],
    without: found
      .filter(({ bars }) => bars.length === 0)
      .map(({ kind, profiled_ms, roofline_ms }) => ({
        stage: kind,
        reason:
          profiled_ms.value === null
            ? profiled_ms.reason.text
            : roofline_ms.value === null
              ? roofline_ms.reason.text
              : 'no operator of it was recorded',
      })),
  };
}

/** Of the timed stages of the clean execution, ms. */
async function quantilesOf(
  database: SessionDatabase,
): Promise<Map<string, Pick<StageWaterfall, 'median_ms' | 'p10_ms'>>> {
  const rows = await database.query<{ kind: string; median_ms: number; p10_ms: number }>(
    `SELECT kind, median((end_ns - start_ns) / 1e6) AS median_ms, quantile_cont((end_ns - start_ns) / 1e6, 0.1) AS p10_ms
     FROM stages WHERE execution_id = 'clean' AND NOT coalesce(warmup, false) GROUP BY kind`,
  );
  return new Map(rows.map(({ kind, ...quantiles }) => [kind, quantiles]));
}

/** The logits read once at what this machine's memory gives the step around it; the rest is the host's. */
function samplingOf(
  { duration_ms: time, instances }: StageResult,
  steps: readonly StageResult[],
  workload: Workload,
): StageWaterfall | null {
  if (time.value === null) return null;
  const model = workloadModel(workload);
  const bandwidth =
    steps.find(({ kind }) => kind === 'decode')?.bandwidth_bytes_per_s ??
    missing('no_roofline', "this machine's roofline was not measured");
  const need =
    'reason' in model
      ? model
      : necessaryOfSampling(
          workload.batch_size ?? 1,
          model,
          { flops: () => bandwidth, bandwidth },
          new Map(),
        );
  const rooflineMs = 'reason' in need ? null : need.rooflineMs;
  const parts = [
    ...(rooflineMs === null ? [] : [{ id: 'roofline', ms: rooflineMs }]),
    { id: 'host.sampling', ms: time.value - (rooflineMs ?? 0) },
    { id: 'unattributed', ms: 0 },
  ];
  const measured = time.value;
  return {
    kind: 'sampling',
    name: null,
    source: 'profile',
    execution_id: 'clean',
    point: null,
    instances,
    measured_ms: time,
    median_ms: null,
    p10_ms: null,
    clock: 'host',
    clock_why: 'the host chooses the tokens',
    clean_ms: time,
    roofline_ms: figureOfNeed(need),
    roofs: [],
    bars: parts.map(({ id, ms }) => ({
      id,
      ms,
      share: ms / measured,
      count: null,
      ...barWords(id, { peaksMeasured: true, kind: 'sampling' }),
      sharpen: null,
      sql: id === 'host.sampling' ? samplingSql(rooflineMs ?? 0) : null,
      note:
        id === 'roofline'
          ? 'the logits read once, a token id written: bytes / bandwidth'
          : ms < 0
            ? 'faster than its necessary time: the logits were still in a nearer cache'
            : null,
      parts: [],
    })),
    sum_error_share: 0,
    rows: [],
    ranks: [{ rank: null, device: null, measured_ms: measured }],
  };
}

/** A mean over the repeats of a launch, and of the launches, as meanOverLaunches has it. */
const samplingSql = (rooflineMs: number): string =>
  `SELECT 'sampling' AS what, sum(n) AS count, avg(ms) AS ms FROM (
  SELECT launch, sum(n) AS n, avg(ms) AS ms FROM (
    SELECT i.launch, s.pid, s.iteration, count(*) AS n, avg(s.end_ns - s.start_ns) / 1e6 AS ms
    FROM stages s JOIN iterations i ON i.execution_id = s.execution_id AND i.pid = s.pid AND i.iteration = s.iteration
    WHERE s.execution_id = 'clean' AND s.kind = 'sampling' AND NOT s.warmup GROUP BY ALL) GROUP BY launch)
UNION ALL SELECT '(roofline)', NULL, ${-rooflineMs}`;

/** The same stage as a waterfall. */
export function waterfallOf(stage: StageResult): StageWaterfall {
  const measured = stage.duration_ms.value ?? 0;
  const total = stage.bars.reduce((sum, { ms }) => sum + ms, 0);
  const { bandwidth_bytes_per_s: bandwidth } = stage;
  return {
    kind: stage.kind,
    name: null,
    source: 'profile',
    execution_id: 'clean',
    point: null,
    instances: stage.instances,
    measured_ms: stage.duration_ms,
    median_ms: null,
    p10_ms: null,
    clock: 'host',
    clock_why: 'the engine computes on the thread that calls it',
    clean_ms: stage.duration_ms,
    roofline_ms: stage.roofline_ms,
    roofs:
      bandwidth.value === null
        ? []
        : [`bandwidth ${(bandwidth.value / 1e9).toPrecision(3)} GB/s: ${bandwidth.source}`],
    bars: stage.bars.map((bar) => barOf(bar, stage, measured)),
    sum_error_share: measured > 0 ? Math.abs(total - measured) / measured : 0,
    // The clean instances have no operators, and those that have were slowed by the profiler.
    rows: [],
    ranks: [{ rank: null, device: null, measured_ms: measured }],
  };
}

function barOf(bar: StageResult['bars'][number], stage: StageResult, measured: number): WaterfallBar {
  const [head = '', tail = ''] = bar.id.split('.');
  const row = stage.breakdown?.by_class.find((one) => one.class === tail);
  const ofClass = head === 'inefficiency' || head === 'nonessential';
  return {
    id: bar.id,
    ms: bar.ms,
    share: measured > 0 ? bar.ms / measured : 0,
    count: ofClass ? (row?.calls ?? null) : null,
    ...barWords(bar.id, { peaksMeasured: true }),
    confidence: bar.confidence,
    sharpen: null,
    sql: sqlOf(bar, stage),
    note: noteOf(bar.id, bar.ms),
    parts: ofClass
      ? (stage.breakdown?.top_operators ?? [])
          .filter((one) => one.class === tail)
          .slice(0, 5)
          .map(({ name, ms, calls }) => ({ label: name, ms, count: calls }))
      : [],
  };
}

function sqlOf({ id, ms }: StageResult['bars'][number], { kind, breakdown }: StageResult): string | null {
  const [head = '', tail = ''] = id.split('.');
  const n = breakdown?.instances ?? 0;
  if (n === 0) return null;
  const constant = (label: string, value: number) =>
    Math.abs(value) > 1e-9 ? `\nUNION ALL SELECT '${label}', NULL, ${value}` : '';
  const of = `s.execution_id = 'profiled' AND s.kind = '${kind}' AND NOT s.warmup`;
  if (head === 'inefficiency' || head === 'nonessential') {
    const row = breakdown!.by_class.find((one) => one.class === tail);
    return `SELECT o.name AS what, count(*) / ${n} AS count, sum(o.dur_ns) / 1e6 / ${n} AS ms
FROM stages s JOIN ops o USING (execution_id, stage_id) WHERE ${of} AND o.class = '${tail}' GROUP BY 1${constant('(necessary time, model arithmetic)', ms - (row?.ms ?? 0))} ORDER BY 3 DESC`;
  }
  if (id === 'host.runtime_dispatch' || id === 'host.runtime_call') {
    const gaps =
      id === 'host.runtime_dispatch' ? breakdown!.gaps_between_operators_ms : breakdown!.gaps_at_edges_ms;
    return `SELECT g.cause AS what, count(*) / ${n} AS count, sum(g.dur_ns) / 1e6 / ${n} AS ms
FROM stages s JOIN gaps g USING (execution_id, stage_id) WHERE ${of} AND g.cause = '${id}' GROUP BY 1${constant('(taken out: added by the profiler)', ms - gaps)} ORDER BY 3 DESC`;
  }
  if (id === 'host.sampling') {
    return "SELECT 'sampling' AS what, 1 AS count, avg(end_ns - start_ns) / 1e6 AS ms FROM stages WHERE execution_id = 'clean' AND kind = 'sampling' AND NOT warmup AND step_index IS NOT NULL";
  }
  return null;
}

function noteOf(id: string, ms: number): string | null {
  if (id === 'roofline') return 'max(Σ FLOPs / peak, Σ bytes / bandwidth) of the whole stage';
  if (id === 'serial') {
    return 'Σ over classes of what their operations need one by one, less the roofline';
  }
  if (id === 'host.loop') return 'W of the clean execution less the call and sampling';
  if (id === 'unattributed') {
    return ms < 0
      ? "the profiled pass's operators took longer than in the clean execution, by this much"
      : 'the clean execution took longer than the profiled operators and gaps explain';
  }
  if (ms >= 0) return null;
  return 'faster than its necessary time: bytes came from a cache that the bandwidth at this working set does not count';
}
