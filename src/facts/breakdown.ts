import { type Bound, boundOf, type PeakFlops } from '../llm/utilization.js';
import type { OpClass } from '../model/classes.js';
import type { Breakdown, ClassRow } from '../model/documents/profile.js';
import type { NecessaryWork } from '../model/documents/utilization.js';
import type { SessionDatabase } from '../session/query.js';
import { totalsOf } from './utilization/groups.js';

/** Peaks and bandwidth that the classes are compared with. */
interface Roofs {
  peaks: PeakFlops;
  bytesPerS: number;
}

const topOperators = 25;

/**
 * Breakdown of a stage's profiled time: operators by class, layer and name, and the gaps between them, as means over
 * the stage's timed instances. Operators + gaps + remainder = stage.
 * @param work the stage's necessary operations; empty without a model
 * @param roofs null if there is no roofline: bounds and necessary times are null
 * @returns null when no operator of a timed instance was recorded
 */
export async function readBreakdown(
  database: SessionDatabase,
  kind: 'prefill' | 'decode',
  work: readonly NecessaryWork[],
  roofs: Roofs | null,
): Promise<Breakdown | null> {
  const from = `stages s JOIN ops o USING (execution_id, stage_id)
     WHERE s.execution_id = 'profiled' AND s.kind = '${kind}' AND NOT s.warmup`;
  const [stage] = await database.query<{ instances: number; ns: number | null }>(
    `SELECT count(*) AS instances, avg(end_ns - start_ns) AS ns FROM stages
     WHERE execution_id = 'profiled' AND kind = $1 AND NOT warmup`,
    [kind],
  );
  const classes = await database.query<ClassCount>(
    `SELECT o.class, o.layer, count(*) AS calls, sum(o.dur_ns) AS ns FROM ${from} GROUP BY ALL`,
  );
  if (!stage || stage.instances === 0 || stage.ns === null || classes.length === 0) return null;
  const gaps = await database.query<{ cause: string; ns: number }>(
    `SELECT g.cause, sum(g.dur_ns) AS ns FROM stages s JOIN gaps g USING (execution_id, stage_id)
     WHERE s.execution_id = 'profiled' AND s.kind = $1 AND NOT s.warmup GROUP BY g.cause`,
    [kind],
  );
  const instances = stage.instances;
  const ms = (ns: number) => ns / instances / 1e6;
  const gapMs = (cause: string) => ms(gaps.find((gap) => gap.cause === cause)?.ns ?? 0);
  const stage_ms = stage.ns / 1e6;
  const operators_ms = ms(classes.reduce((sum, { ns }) => sum + ns, 0));
  const betweenMs = gapMs('host.runtime_dispatch');
  const edgesMs = gapMs('host.runtime_call');

  const top = await database.query<{
    name: string;
    op_type: string;
    class: OpClass;
    layer: number | null;
    calls: number;
    ns: number;
    input_shapes: string | null;
  }>(
    `SELECT o.name, o.op_type, o.class, o.layer, count(*) AS calls, sum(o.dur_ns) AS ns,
            last(o.input_shapes ORDER BY o.start_ns) AS input_shapes
     FROM ${from} GROUP BY o.name, o.op_type, o.class, o.layer ORDER BY ns DESC, o.name LIMIT ${topOperators}`,
  );
  return {
    instances,
    stage_ms,
    operators_ms,
    gaps_between_operators_ms: betweenMs,
    gaps_at_edges_ms: edgesMs,
    remainder_ms: stage_ms - operators_ms - betweenMs - edgesMs,
    by_class: classRows(classes, instances, stage_ms, work, roofs),
    by_layer: layerRows(classes, instances),
    top_operators: top.map(({ ns, calls, ...operator }) => ({
      ...operator,
      calls: calls / instances,
      ms: ms(ns),
      share: ms(ns) / stage_ms,
    })),
  };
}

interface ClassCount {
  class: OpClass;
  layer: number | null;
  calls: number;
  ns: number;
}

function classRows(
  counts: ClassCount[],
  instances: number,
  stageMs: number,
  work: readonly NecessaryWork[],
  roofs: Roofs | null,
): ClassRow[] {
  const names = [...new Set(counts.map((count) => count.class))];
  return names
    .map((opClass): ClassRow => {
      const classCounts = counts.filter((count) => count.class === opClass);
      const ms = classCounts.reduce((sum, count) => sum + count.ns, 0) / instances / 1e6;
      const necessary = work.filter((op) => op.class === opClass);
      const row = {
        class: opClass,
        calls: classCounts.reduce((sum, count) => sum + count.calls, 0) / instances,
        ms,
        share: ms / stageMs,
      };
      if (necessary.length === 0) return { ...row, ...noNecessaryWork };
      const { flops, bytes_total: bytes } = totalsOf(necessary);
      const bound = boundIfKnown(necessary, roofs);
      return {
        ...row,
        necessary_flops: flops,
        necessary_bytes: bytes,
        necessary_ms:
          bound && 1e3 * necessary.reduce((sum, op) => sum + (boundIfKnown([op], roofs)?.roofline_s ?? 0), 0),
        intensity_flop_per_byte: bytes > 0 ? flops / bytes : null,
        achieved_flops_per_s: flops > 0 ? (flops / ms) * 1e3 : null,
        achieved_bytes_per_s: (bytes / ms) * 1e3,
        bound: bound && bound.bound,
      };
    })
    .sort((a, b) => b.ms - a.ms);
}

/** Null if a roof is unknown. */
function boundIfKnown(ops: readonly NecessaryWork[], roofs: Roofs | null): Bound | null {
  const limit = roofs && boundOf(totalsOf(ops), roofs.peaks, roofs.bytesPerS);
  return limit && 'bound' in limit ? limit : null;
}

const noNecessaryWork = {
  necessary_flops: null,
  necessary_bytes: null,
  necessary_ms: null,
  intensity_flop_per_byte: null,
  achieved_flops_per_s: null,
  achieved_bytes_per_s: null,
  bound: null,
};

function layerRows(counts: ClassCount[], instances: number): Breakdown['by_layer'] {
  const layers = [...new Set(counts.map((count) => count.layer))].sort(
    (x, y) => (x ?? Infinity) - (y ?? Infinity),
  );
  return layers.map((layer) => {
    const layerCounts = counts.filter((count) => count.layer === layer);
    const by_class = layerCounts
      .map((count) => ({ class: count.class, ms: count.ns / instances / 1e6 }))
      .sort((a, b) => b.ms - a.ms);
    return { layer, ms: by_class.reduce((sum, row) => sum + row.ms, 0), by_class };
  });
}
