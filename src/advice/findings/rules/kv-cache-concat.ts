import { gainOf } from '../gain.js';
import { findCopiedContext } from '../operators/copied-context.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import type { StageFacts } from '../stage-facts.js';
import { type ContextCopies, contextCopies, contextCopiesSql } from '../context-copies.js';
import { barsOf, checkAgain, classBars, minShare, stageRule } from '../stage-rule.js';
import { instanceWord, count, everyInstance, ms, part, plural } from '../words.js';
import { formatQuantity, formatNs } from '../../../vocabulary/format.js';

/**
 * A longer copy moves more than a step's own tokens: 10 µs are 20 MB read and written at 4 TB/s, while a step's activations are
 * hundreds of KB.
 */
const minLongCopyNs = 10_000;
/** Time to write only the new tokens: one short kernel. */
const writeNs = 2_000;
/** A concatenation of one row to fewer rows may be something else. */
const minTokens = 16;
/**
 * Launches that a static cache of transformers adds to those of a dynamic one if the step is not compiled (5.17, counted on GPT-NeoX, Llama
 * and Qwen3): in each layer the positions (arange, add, add_) and the mask as a bias (two fills, where); per step the mask.
 */
const staticLaunches = { perLayer: 6, perStep: 5 };

/** Keys and values of all earlier tokens are copied in every step, to append one. */
export const kvCacheConcat = stageRule(
  {
    id: 'kv_cache_concat',
    title: 'KV cache copied every step',
    docs: {
      finds: 'Keys and values of all earlier tokens are copied in every step to append one.',
      needs: "a GPU timeline (nsys or PyTorch's profiler), or PyTorch's operators of a program without a GPU",
      gain: "The time of those copies minus one short write each; low end 80 % of it. transformers' static cache adds launches, which limit it in a step that the host limits.",
      change: 'Write into a cache that is allocated once (static or paged).',
      withheld:
        'less than 5 % of the stage is affected, or the copies neither grow with the steps nor append to a context, by their shapes where recorded',
    },
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
    if (stage.kind === 'prefill') return 'a prefill creates its keys and values';
    const copies = await contextCopies(context, stage);
    const time = copies.reduce((sum, copy) => sum + copy.ms, 0);
    const n = copies.reduce((sum, copy) => sum + copy.n, 0);
    const summary = `${count(n)} copies that may be of the context take ${part(time, stage.wall_ms)}`;
    if (time < minShare * stage.wall_ms) return summary;
    const appending = await readAppends(context);
    const onlyCats = copies.every(({ cat, grows }) => cat && !grows);
    if (appending !== true && (stage.kind === 'outside' || (appending === false && onlyCats)))
      return `${summary}; there is no sign that they append a token to a cache`;
    const isLong = (time / Math.max(1, n)) * 1e6 >= minLongCopyNs;
    if (!isLong && !copies.some(({ grows }) => grows)) {
      return `${summary}, but each is short (${ms(time / Math.max(1, n))}) and none grows with the steps`;
    }
    return finding(context, stage, copies);
  },
  findCopiedContext,
);

/** Whether operators concatenate one token to many: [batch, heads, n, size] and [batch, heads, 1, size]; null: no shapes are recorded. */
async function readAppends({ database }: FindingContext): Promise<boolean | null> {
  const rows = await database.query<{ shapes: string }>(
    "SELECT DISTINCT input_shapes AS shapes FROM rank_ops WHERE name = 'aten::cat' AND input_shapes IS NOT NULL LIMIT 500",
  );
  if (rows.length === 0) return null;
  return rows.some(({ shapes }) => {
    const [lists] = JSON.parse(shapes) as unknown[];
    const [long, short] = Array.isArray(lists) ? (lists as number[][]) : [];
    if (!Array.isArray(long) || !Array.isArray(short) || long.length < 3) return false;
    return long.some((size, axis) => short[axis] === 1 && size >= minTokens);
  });
}

/** 0: the program does not use the dynamic cache of transformers. */
function launchesOfStaticCache({ manifest, model }: FindingContext, copies: number): number {
  if (manifest.workload?.model?.facts?.cache !== 'DynamicCache') return 0;
  // Keys and values.
  const layers = 'architecture' in model ? model.architecture.layers.length : copies / 2;
  return staticLaunches.perStep + Math.round(layers) * staticLaunches.perLayer;
}

async function finding(
  context: FindingContext,
  stage: StageFacts,
  copies: readonly ContextCopies[],
): Promise<FoundDraft> {
  const { kind, wall_ms: wall, instances } = stage;
  const time = copies.reduce((sum, copy) => sum + copy.ms, 0);
  const n = copies.reduce((sum, copy) => sum + copy.n, 0);
  const cats = copies.filter(({ cat }) => cat).reduce((sum, copy) => sum + copy.ms, 0);
  const mostlyCats = cats >= time / 2;
  const added = mostlyCats ? launchesOfStaticCache(context, n) : 0;
  const { evidence } = await context.evidence<{ kernel: string; per_step: number; us: number; ms: number }>(
    `SELECT coalesce(name, short_name) AS kernel, round(count(*) / ${instances}, 2) AS per_step, round(avg(dur_ns) / 1e3, 2) AS us,
            round(min(dur_ns) / 1e3, 2) AS min_us, round(max(dur_ns) / 1e3, 2) AS max_us, round(sum(exclusive_ns) / 1e6 / ${instances}, 4) AS ms
     FROM phase_kernels WHERE step_kind = '${kind}' AND (${contextCopiesSql(copies)}) GROUP BY 1
     UNION ALL SELECT 'copy engine, device to device', round(count(*) / ${instances}, 2), round(avg(dur_ns) / 1e3, 2), round(min(dur_ns) / 1e3, 2),
            round(max(dur_ns) / 1e3, 2), round(sum(exclusive_ns) / 1e6 / ${instances}, 4)
     FROM phase_copies WHERE step_kind = '${kind}' AND kind = 'DtoD' AND ${copies.some(({ name }) => name === null)} HAVING count(*) > 0 ORDER BY ms DESC, kernel`,
    (rows) =>
      rows.length === 0
        ? `${count(n)} copies on the device in ${instanceWord(kind)}, ${ms(time)}`
        : `${rows[0]!.kernel}: ${rows[0]!.per_step} of ${formatQuantity(rows[0]!.us, 'us')} in ${instanceWord(kind)}`,
  );
  const gain = Math.max(0, time - (n * writeNs) / 1e6);
  return {
    stage: kind,
    title: (share) =>
      `KV cache copied: ${count(n)} ${mostlyCats ? 'concatenations' : 'copies that grow with the context'} cost ${share} of ${everyInstance(kind)}`,
    at_stake_ms: gain,
    cause: `${instanceWord(kind)} spends ${ms(time)} in ${count(n)} copies of ${ms(time / Math.max(1, n))} each. ${mostlyCats ? 'torch.cat of the cache with one new token does this' : 'They take longer from step to step, like a cache that is cloned, reallocated, made contiguous or repeated for every head'}: all earlier keys and values are read and written again in every layer.`,
    change: {
      kind: 'code',
      text:
        added > 0
          ? `Use a static cache, and compile the steps or capture them into a CUDA graph: on its own, it adds about ${plural(added, 'launch', 'launches')} per step for positions and a mask.`
          : 'Write new keys and values into a cache allocated once (static or paged), and attend to a view of it.',
      example:
        added > 0
          ? 'model.generation_config.cache_implementation = "static"  # generate() compiles its steps then'
          : mostlyCats
            ? 'keys[:, :, position] = k  # instead of torch.cat'
            : 'keys[:, :, position] = k; F.scaled_dot_product_attention(q, keys[:, :, :n], values[:, :, :n], enable_gqa=True)  # no clone, no repeat_interleave',
    },
    gain: gainOf(
      wall,
      gain,
      `Each copy becomes a write of the new tokens, ${formatNs(writeNs)}; attention takes as long as now.`,
      { low_ms: 0.8 * gain, high_ms: time },
    ),
    ...(added > 0 && { launches: -added }),
    confidence: 'medium',
    bars: [...classBars(context, kind, ['copy']), ...barsOf(context, kind, ['exposed_copy.dtod'])],
    evidence: [evidence],
    check: checkAgain,
  };
}
