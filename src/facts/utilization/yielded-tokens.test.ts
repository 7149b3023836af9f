import { expect, test } from 'vitest';
import { yieldedTokens } from './yielded-tokens.js';

test('a decode step that computes its whole context again yields one token per sequence', () => {
  const decode = { kind: 'decode', batch_size: 8, new_tokens: 8200, context_tokens_sum: 8200 } as const;
  expect(yieldedTokens(decode)).toBe(8);
  // With a cache, with speculated tokens, and a prefill.
  expect(yieldedTokens({ ...decode, new_tokens: 8 })).toBe(8);
  expect(yieldedTokens({ ...decode, new_tokens: 40 })).toBe(40);
  expect(yieldedTokens({ ...decode, kind: 'prefill' })).toBe(8200);
  expect(yieldedTokens({ ...decode, new_tokens: null })).toBeNull();
  expect(yieldedTokens({ ...decode, batch_size: null })).toBe(8200);
});
