import { stripVTControlCharacters } from 'node:util';
import { expect, it } from 'vitest';
import { document } from '../model/document.js';
import type { EstimateResult } from '../model/documents/estimate.js';
import { terminalView } from '../render/terminal/view.js';
import { estimateView } from './estimate.js';
import { rangesText } from './ranges.js';

const sizes = {
  parameters: 2_000_000,
  flops: 512_000_000,
  weight_bytes: 4_000_000,
  kv_read_bytes: 1024,
  kv_write_bytes: 1024,
  activation_in_bytes: 4096,
  activation_out_bytes: 8192,
  bytes: 4_014_336,
};

const result: EstimateResult = {
  model: { name: 'm', model_type: 'llama', family: 'Llama', layers: 3, hidden_size: 64, vocab_size: 512 },
  weight_format: 'float16',
  activation_dtype: 'float16',
  kv_cache_dtype: 'float16',
  parameters: { total: 6_000_000, active: 4_000_000, embedding: 0, lm_head: 0 },
  weight_bytes: 12_000_000,
  kv_cache_bytes_per_token: 2048,
  layers: {
    phase: 'decode',
    batch_size: 2,
    new_tokens: 1,
    context_tokens: 128,
    groups: [
      {
        layers: [0, 1, 3],
        structure: 'x',
        modules: [{ module: 'attn', class: 'gemm', ...sizes }],
        total: sizes,
      },
    ],
    outside: [{ module: 'lm_head', class: 'gemm', ...sizes }],
    total: sizes,
  },
  files: null,
  memory: null,
};

it('formats layer ranges', () => {
  expect(rangesText([0, 1, 2, 4, 6, 7])).toBe('0–2, 4, 6–7');
  expect(rangesText([5])).toBe('5');
});

it('shows shape, groups with their layers, and each figure in its column', () => {
  const view = estimateView(document('estimate', '1.0', result));
  const text = stripVTControlCharacters(terminalView(view, { width: 80 }));
  expect(text).toContain('decode, batch 2, 1 new token per sequence, 128 in the KV cache before');
  expect(text).toContain('Sum of 3 equal layers, 0–1, 3: x');
  expect(text).toContain('6 000 000');
  // KV cache read and written: 2048 bytes.
  expect(text).toMatch(/^ {2}attn +2\.00 +512 MFLOP +4\.01 MB +2\.05 kB +4\.10 kB +8\.19 kB$/m);
  expect(text).toMatch(/^ {2}layer 0–1, 3 +2\.00 /m);
});
