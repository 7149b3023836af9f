import type { SessionDatabase } from '../../session/query.js';
import type { FoundDraft } from './rule.js';

/** A batch of matrices: [batch, rows, columns]. */
const isBatch = (shape: number[] | undefined): shape is number[] =>
  Array.isArray(shape) &&
  shape.length === 3 &&
  shape.every((size) => typeof size === 'number') &&
  shape[0]! > 1;

/** A head has at least this many dimensions; rotary embeddings multiply frequencies by positions over an inner dimension of 1. */
const minHeadDimension = 8;

/**
 * Whether the second of two batched GEMMs takes the result of the first, as attention does: queries × keys over the head
 * dimension, then scores × values over the context.
 */
export function multipliesScores(before: number[][] | undefined, after: number[][] | undefined): boolean {
  const [queries, keys] = (before ?? []).filter(isBatch).slice(-2);
  const [scores, values] = (after ?? []).filter(isBatch).slice(-2);
  return (
    queries !== undefined &&
    keys !== undefined &&
    scores !== undefined &&
    values !== undefined &&
    queries[2]! >= minHeadDimension &&
    queries[2] === keys[1] &&
    scores[0] === queries[0] &&
    scores[1] === queries[1] &&
    scores[2] === keys[2] &&
    values[1] === scores[2] &&
    values[2]! >= minHeadDimension
  );
}

/**
 * The change for unfused attention. A program that calls scaled_dot_product_attention already needs one of its fused backends,
 * not the call.
 * @param example how a program without the call gets it
 */
export async function fusedAttentionChange(
  database: SessionDatabase,
  example: string,
): Promise<FoundDraft['change']> {
  const math = await database.query(
    "SELECT 1 FROM rank_ops WHERE name = 'aten::_scaled_dot_product_attention_math' LIMIT 1",
  );
  if (math.length > 0)
    return {
      kind: 'code',
      text: 'scaled_dot_product_attention runs, but its unfused math backend: give it inputs that a fused backend accepts (float16 or bfloat16, is_causal instead of a materialized mask, a supported head dimension).',
      example:
        'with torch.nn.attention.sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]): …  # warns why a backend cannot run',
    };
  return {
    kind: 'code',
    text: 'Use scaled_dot_product_attention or FlashAttention; in transformers, set the attention implementation.',
    example,
  };
}
