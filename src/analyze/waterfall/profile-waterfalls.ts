import type { StageResult } from '../../model/documents/profile.js';
import type { StageWaterfall, WaterfallBar } from '../../model/documents/explain.js';
import type { MachineRoofline } from '../../model/documents/roofline.js';
import type { Workload } from '../../model/manifest.js';
import type { SessionDatabase } from '../../session/query.js';
import { stages } from '../stages.js';
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
  const found = (await stages(database, workload, roofline)).filter(({ kind }) => kind !== 'sampling');
  return {
    stages: found.filter(({ bars }) => bars.length > 0).map(waterfallOf),
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

function waterfallOf(stage: StageResult): StageWaterfall {
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
