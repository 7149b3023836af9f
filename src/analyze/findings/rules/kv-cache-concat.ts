import type { FindingContext, FoundDraft } from '../rule.js';
import type { StageFacts } from '../stage-facts.js';
import { checkAgain, classBars, leastShare, stageRule } from '../stage-rule.js';
import { copyRoles } from '../kernel-roles.js';
import { aStage, count, everyStage, ms, part } from '../words.js';

/**
 * A copy that takes longer moves more than a step's own tokens: 10 µs are 20 MB read and written at 4 TB/s, and a step's
 * activations are hundreds of KB.
 */
const longCopyNs = 10_000;
/** Time of a write of the new tokens alone: one short kernel (docs/measurement.md: a launch of next to no work). */
const writeNs = 2_000;
/** Fewer rows beside one are as likely something else. */
const manyTokens = 16;
/** Of the mean a step: growth over the steps seen that no noise of many copies reaches. */
const growth = 0.02;

/** Keys and values of all earlier tokens are copied in every step, to append one. */
export const kvCacheConcat = stageRule(
  {
    id: 'kv_cache_concat',
    title: 'KV cache copied every step',
    references: [
      {
        title: 'Hugging Face transformers: cache strategies (static cache)',
        url: 'https://huggingface.co/docs/transformers/kv_cache',
      },
      {
        title: 'Efficient Memory Management for LLM Serving with PagedAttention',
        url: 'https://arxiv.org/abs/2309.06180',
      },
    ],
  },
  async (context, stage) => {
    if (stage.kind === 'prefill') return 'a prefill makes its keys and values';
    const { ms: time, n } = await copiesOf(context, stage);
    const shown = `${count(n)} concatenations take ${part(time, stage.wall_ms)}`;
    if (time < leastShare * stage.wall_ms) return shown;
    if (stage.kind === 'outside' && !(await appends(context)))
      return `${shown}; nothing tells that they append a token to a cache`;
    const long = (time / Math.max(1, n)) * 1e6 >= longCopyNs;
    if (!long && !(await grows(context, stage))) {
      return `${shown}, but each is short (${ms(time / Math.max(1, n))}) and none grows with the steps`;
    }
    return finding(context, stage, time, n);
  },
);

async function copiesOf({ database }: FindingContext, stage: StageFacts): Promise<{ n: number; ms: number }> {
  const [kernels] = await database.query<{ n: number; ms: number }>(
    `SELECT coalesce(sum(n), 0) / ${stage.instances} AS n, coalesce(sum(ns), 0) / 1e6 / ${stage.instances} AS ms
     FROM finding_kernels WHERE kind = '${stage.kind}' AND ${copyRoles.cat}`,
  );
  return kernels!;
}

/** Whether operators concatenate one token to many: [batch, heads, n, size] and [batch, heads, 1, size]. */
async function appends({ database }: FindingContext): Promise<boolean> {
  const rows = await database.query<{ shapes: string }>(
    "SELECT DISTINCT input_shapes AS shapes FROM own_ops WHERE name = 'aten::cat' AND input_shapes IS NOT NULL LIMIT 500",
  );
  return rows.some(({ shapes }) => {
    const [lists] = JSON.parse(shapes) as unknown[];
    const [long, short] = Array.isArray(lists) ? (lists as number[][]) : [];
    if (!Array.isArray(long) || !Array.isArray(short) || long.length < 3) return false;
    return long.some((size, axis) => short[axis] === 1 && size >= manyTokens);
  });
}

/** Slope of the copies' time a step over the steps of an iteration, against its own error. */
async function grows({ database }: FindingContext, { kind, instances }: StageFacts): Promise<boolean> {
  if (kind === 'outside' || instances < 4) return false;
  const [fit] = await database.query<{
    slope: number | null;
    error: number | null;
    mean: number;
    span: number;
  }>(
    `WITH step AS (
       SELECT w.stage_id, coalesce(w.iteration, 0) AS iteration, w.start_ns, sum(k.dur_ns) AS y
       FROM own_kernels k JOIN phase_of p USING (stage_id) JOIN windows w ON w.stage_id = p.step_id
       WHERE w.kind = '${kind}' AND ${copyRoles.cat} GROUP BY ALL),
     numbered AS (SELECT y, row_number() OVER (PARTITION BY iteration ORDER BY start_ns) AS x FROM step)
     SELECT regr_slope(y, x) AS slope, sqrt(greatest(regr_syy(y, x) - regr_slope(y, x) * regr_sxy(y, x), 0) / greatest(count(*) - 2, 1) / nullif(regr_sxx(y, x), 0)) AS error,
            avg(y) AS mean, max(x) - min(x) AS span FROM numbered`,
  );
  if (!fit || fit.slope === null || fit.slope <= 0) return false;
  return fit.slope > 4 * (fit.error ?? 0) && fit.slope * fit.span > growth * fit.mean;
}

async function finding(
  context: FindingContext,
  stage: StageFacts,
  time: number,
  n: number,
): Promise<FoundDraft> {
  const { kind, wall_ms: wall, instances } = stage;
  const { evidence } = await context.evidence<{ kernel: string; per_step: number; us: number; ms: number }>(
    `SELECT coalesce(short_name, name) AS kernel, round(count(*) / ${instances}, 2) AS per_step, round(avg(dur_ns) / 1e3, 2) AS us,
            round(sum(exclusive_ns) / 1e6 / ${instances}, 4) AS ms
     FROM focus_kernels WHERE phase = '${kind}' AND ${copyRoles.cat} GROUP BY 1 ORDER BY ms DESC`,
    (rows) =>
      rows.length === 0
        ? `${count(n)} copies on the device in ${aStage(kind)}, ${ms(time)}`
        : `${rows[0]!.kernel}: ${rows[0]!.per_step} launches of ${rows[0]!.us} µs in ${aStage(kind)}`,
  );
  const gain = Math.max(0, time - (n * writeNs) / 1e6);
  return {
    stage: kind,
    title: `KV cache copied: ${count(n)} concatenations take ${part(time, wall)} of ${everyStage(kind)}`,
    at_stake_ms: gain,
    cause: `${aStage(kind)} spends ${ms(time)} in ${count(n)} copies of ${ms(time / Math.max(1, n))} each. That is what torch.cat of the cache with one new token does: all earlier keys and values are read and written again in every layer, the more the longer the context.`,
    change: {
      kind: 'code',
      text: 'Write new keys and values into a cache that was allocated once (static or paged), and attend to a view of it.',
      example:
        'model.generation_config.cache_implementation = "static"  # or: keys[:, :, position] = k instead of torch.cat',
    },
    gain: {
      expected_ms: gain,
      low_ms: 0.8 * gain,
      high_ms: time,
      after_ms: wall - gain,
      assumption: `Each copy becomes a write of the new tokens, ${writeNs / 1000} µs; attention stays as it is.`,
      what_if: null,
    },
    confidence: 'medium',
    bars: classBars(context, kind, ['copy']),
    evidence: [evidence],
    check: checkAgain,
  };
}
