import type { UtilizationStage } from '../../model/documents/utilization.js';

/**
 * Tokens that a mean step yields. A decode step without a KV cache computes all tokens of its sequences again (its new tokens are all of
 * its context) and still yields one per sequence.
 */
export function yieldedTokens({
  kind,
  batch_size: batch,
  new_tokens: tokens,
  context_tokens_sum: context,
}: Pick<UtilizationStage, 'kind' | 'batch_size' | 'new_tokens' | 'context_tokens_sum'>): number | null {
  const recomputes =
    kind === 'decode' &&
    batch !== null &&
    tokens !== null &&
    context !== null &&
    tokens > batch &&
    context <= tokens;
  return recomputes ? batch : tokens;
}
