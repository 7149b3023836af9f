import type { PhaseKind } from '../../model/documents/trace.js';
import { literal } from '../../facts/trace/scope.js';
import { copyRoles } from './kernel-roles.js';
import type { FindingContext } from './rule.js';
import type { StageFacts } from './stage-facts.js';
import { tablesOfPositions } from './position-tables.js';
import { blocksSql, type SequenceKernel, stepSequence } from './step-sequence.js';

/** Share of the mean per step: smaller growth over the captured steps can be noise of many copies. */
const minGrowth = 0.02;
/** Share of the stage: smaller copies are not tested for growth. */
const minShare = 0.02;
/** With fewer steps a slope is not meaningful. */
const minSteps = 4;

/** A launch size that occurs in at least this share of the steps does not depend on the step. */
const minStepShare = 0.9;

/** Copies of one kind per step: a kernel name, or null for the copy engine. */
export interface ContextCopies {
  name: string | null;
  /** Launch sizes that are included, in blocks; null: all launches of the name. */
  sizes: Sizes | null;
  /** A concatenation, by name. */
  cat: boolean;
  n: number;
  ms: number;
  /** Whether they take longer from step to step: the amount copied grows with the context. */
  grows: boolean;
}

/** These sizes, or all others: those that differ from step to step. */
interface Sizes {
  blocks: number[];
  others: boolean;
}

const copiesByContext = new WeakMap<FindingContext, Map<PhaseKind, Promise<ContextCopies[]>>>();

/**
 * Copies within the device that may copy the whole context, by kernels or the copy engine: concatenations, and other copies that
 * take longer from step to step (a cache that is cloned, reallocated, made contiguous or repeated for every head). Values per
 * mean step; empty for a prefill.
 */
export function contextCopies(context: FindingContext, stage: StageFacts): Promise<ContextCopies[]> {
  const copiesByKind = copiesByContext.get(context) ?? new Map<PhaseKind, Promise<ContextCopies[]>>();
  copiesByContext.set(context, copiesByKind);
  const copies = copiesByKind.get(stage.kind) ?? readContextCopies(context, stage);
  copiesByKind.set(stage.kind, copies);
  return copies;
}

async function readContextCopies(context: FindingContext, stage: StageFacts): Promise<ContextCopies[]> {
  if (stage.kind === 'prefill') return [];
  const rows = await context.database.query<Omit<ContextCopies, 'grows' | 'sizes'>>(
    `SELECT name, ${copyRoles.cat} AS cat, sum(n) / ${stage.instances} AS n, sum(ns) / 1e6 / ${stage.instances} AS ms
     FROM finding_kernels WHERE kind = '${stage.kind}' AND class = 'copy' AND name IS NOT NULL GROUP BY ALL
     UNION ALL SELECT NULL, false, sum(n) / ${stage.instances}, sum(ns) / 1e6 / ${stage.instances}
     FROM finding_copies WHERE kind = '${stage.kind}' AND direction = 'DtoD' HAVING sum(n) > 0`,
  );
  const sequence = await stepSequence(context, stage.kind);
  const tables = new Set(tablesOfPositions(sequence).flat());
  const contextNames = new Set(sequence.flatMap((kernel) => (tables.has(kernel) ? [] : kernel.name)));
  const tableNames = new Set([...tables].flatMap(({ name }) => (contextNames.has(name) ? [] : name)));
  const copies: ContextCopies[] = [];
  for (const row of rows) {
    if (row.name !== null && tableNames.has(row.name)) continue;
    // One query per copy: only for copies large enough.
    const growingParts = row.ms >= minShare * stage.wall_ms ? await growingOf(context, stage, row.name) : [];
    if (row.cat) copies.push({ ...row, sizes: null, grows: growingParts.length > 0 });
    else copies.push(...growingParts.map((part) => ({ ...row, ...part, grows: true })));
  }
  return copies;
}

/** Whether a kernel is one of these copies. */
export const isContextCopy = (
  copies: readonly ContextCopies[],
  { name, blocks }: Pick<SequenceKernel, 'name' | 'blocks'>,
): boolean =>
  copies.some(
    (copy) =>
      copy.name === name &&
      (copy.sizes === null || copy.sizes.blocks.includes(blocks ?? -1) !== copy.sizes.others),
  );

/** The same test as an SQL condition on kernels. */
export const contextCopiesSql = (copies: readonly ContextCopies[]): string =>
  copies
    .flatMap(({ name, sizes }) => {
      if (name === null) return [];
      const sizeCondition =
        sizes && `${blocksSql} ${sizes.others ? 'NOT ' : ''}IN (${sizes.blocks.join(', ') || -1})`;
      return [`(name = ${literal(name)}${sizeCondition ? ` AND ${sizeCondition}` : ''})`];
    })
    .join(' OR ') || 'false';

/**
 * Launches that take longer from step to step: the slope of their time over the steps of an iteration against its standard error.
 * One kernel may copy the context in some launch sizes and convert weights in others, so each size is judged separately.
 */
async function growingOf(
  { database }: FindingContext,
  { kind, instances }: StageFacts,
  name: string | null,
): Promise<Pick<ContextCopies, 'sizes' | 'n' | 'ms'>[]> {
  if (kind === 'outside' || instances < minSteps) return [];
  const copies =
    name === null
      ? "SELECT step_id, dur_ns, exclusive_ns, NULL::BIGINT AS blocks FROM phase_copies WHERE kind = 'DtoD'"
      : `SELECT step_id, dur_ns, exclusive_ns, ${blocksSql} AS blocks FROM phase_kernels WHERE name = ${literal(name)}`;
  const fits = await database.query<{
    blocks: number | null;
    n: number;
    ms: number;
    slope: number | null;
    error: number | null;
    mean: number;
    span: number;
  }>(
    `WITH copy_rows AS (
       SELECT w.stage_id, coalesce(w.iteration, 0) AS iteration, w.start_ns, k.dur_ns, k.exclusive_ns, k.blocks
       FROM (${copies}) k JOIN windows w ON w.stage_id = k.step_id WHERE w.kind = '${kind}'),
     frequent AS (SELECT blocks FROM copy_rows GROUP BY blocks HAVING count(DISTINCT stage_id) >= ${minStepShare * instances}),
     step AS (
       SELECT frequent.blocks, stage_id, iteration, start_ns, sum(dur_ns) AS y, count(*) AS n, sum(exclusive_ns) AS ns
       FROM copy_rows LEFT JOIN frequent USING (blocks) GROUP BY ALL),
     numbered AS (SELECT *, row_number() OVER (PARTITION BY blocks, iteration ORDER BY start_ns) AS x FROM step)
     SELECT blocks, sum(n) / ${instances} AS n, sum(ns) / 1e6 / ${instances} AS ms, regr_slope(y, x) AS slope,
            sqrt(greatest(regr_syy(y, x) - regr_slope(y, x) * regr_sxy(y, x), 0) / greatest(count(*) - 2, 1) / nullif(regr_sxx(y, x), 0)) AS error,
            avg(y) AS mean, max(x) - min(x) AS span FROM numbered GROUP BY blocks`,
  );
  return fits
    .filter(
      ({ slope, error, span, mean }) =>
        slope !== null && slope > 4 * (error ?? 0) && slope * span > minGrowth * mean,
    )
    .map(({ blocks, n, ms }) => ({
      n,
      ms,
      sizes:
        fits.length === 1
          ? null
          : blocks === null
            ? { blocks: fits.flatMap((fit) => fit.blocks ?? []), others: true }
            : { blocks: [blocks], others: false },
    }));
}
