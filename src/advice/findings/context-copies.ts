import type { PhaseKind } from '../../model/documents/trace.js';
import { literal } from '../../facts/trace/scope.js';
import { copyRoles } from './kernel-roles.js';
import type { FindingContext } from './rule.js';
import type { StageFacts } from './stage-facts.js';

/** Share of the mean per step: growth over the captured steps that exceeds the noise of many copies. */
const growth = 0.02;
/** Share of the stage: smaller copies are not tested for growth. */
const minShare = 0.02;
/** With fewer steps a slope is not meaningful. */
const minSteps = 4;

/** Copies of one kind per step: a kernel name, or null for the copy engine. */
export interface ContextCopies {
  name: string | null;
  /** A concatenation, by name. */
  cat: boolean;
  n: number;
  ms: number;
  /** Whether they take longer from step to step: the amount copied grows with the context. */
  grows: boolean;
}

const known = new WeakMap<FindingContext, Map<PhaseKind, Promise<ContextCopies[]>>>();

/**
 * Copies within the device that may copy the whole context, by kernels or the copy engine: concatenations, and other copies that
 * take longer from step to step (a cache that is cloned, reallocated, made contiguous or repeated for every head). Values per
 * mean step; empty for a prefill.
 */
export function contextCopies(context: FindingContext, stage: StageFacts): Promise<ContextCopies[]> {
  const own = known.get(context) ?? new Map<PhaseKind, Promise<ContextCopies[]>>();
  known.set(context, own);
  const made = own.get(stage.kind) ?? gather(context, stage);
  own.set(stage.kind, made);
  return made;
}

async function gather(context: FindingContext, stage: StageFacts): Promise<ContextCopies[]> {
  if (stage.kind === 'prefill') return [];
  const rows = await context.database.query<Omit<ContextCopies, 'grows'>>(
    `SELECT name, ${copyRoles.cat} AS cat, sum(n) / ${stage.instances} AS n, sum(ns) / 1e6 / ${stage.instances} AS ms
     FROM finding_kernels WHERE kind = '${stage.kind}' AND class = 'copy' AND name IS NOT NULL GROUP BY ALL
     UNION ALL SELECT NULL, false, sum(n) / ${stage.instances}, sum(ns) / 1e6 / ${stage.instances}
     FROM finding_copies WHERE kind = '${stage.kind}' AND direction = 'DtoD' HAVING sum(n) > 0`,
  );
  const found: ContextCopies[] = [];
  for (const row of rows) {
    // One query per copy: only for copies large enough.
    const grows = row.ms >= minShare * stage.wall_ms && (await growsWithSteps(context, stage, row.name));
    if (row.cat || grows) found.push({ ...row, grows });
  }
  return found;
}

/** Slope of copy time per step over the steps of an iteration, compared with its standard error. */
async function growsWithSteps(
  { database }: FindingContext,
  { kind, instances }: StageFacts,
  name: string | null,
): Promise<boolean> {
  if (kind === 'outside' || instances < minSteps) return false;
  const copies =
    name === null
      ? "SELECT stage_id, dur_ns FROM own_copies WHERE kind = 'DtoD'"
      : `SELECT stage_id, dur_ns FROM own_kernels WHERE name = ${literal(name)}`;
  const [fit] = await database.query<{
    slope: number | null;
    error: number | null;
    mean: number;
    span: number;
  }>(
    `WITH step AS (
       SELECT w.stage_id, coalesce(w.iteration, 0) AS iteration, w.start_ns, sum(k.dur_ns) AS y
       FROM (${copies}) k JOIN phase_of p USING (stage_id) JOIN windows w ON w.stage_id = p.step_id WHERE w.kind = '${kind}' GROUP BY ALL),
     numbered AS (SELECT y, row_number() OVER (PARTITION BY iteration ORDER BY start_ns) AS x FROM step)
     SELECT regr_slope(y, x) AS slope, sqrt(greatest(regr_syy(y, x) - regr_slope(y, x) * regr_sxy(y, x), 0) / greatest(count(*) - 2, 1) / nullif(regr_sxx(y, x), 0)) AS error,
            avg(y) AS mean, max(x) - min(x) AS span FROM numbered`,
  );
  if (!fit || fit.slope === null || fit.slope <= 0) return false;
  return fit.slope > 4 * (fit.error ?? 0) && fit.slope * fit.span > growth * fit.mean;
}
