import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { readArchitecture } from '../../llm/read-architecture.js';
import { estimateMemory } from '../../llm/memory-estimate.js';
import { floatStorage } from '../../llm/storage.js';
import { recordLineSchema } from '../../model/record.js';
import type { VllmLogFacts } from '../../model/vllm-log.js';
import { breakdownOf } from './breakdown.js';
import type { RecordedRow } from './rows.js';
import { rowsOf, memoryRow } from './test-run.js';
import { vllmHost } from './vllm-host.js';

/** As recorded from vLLM 0.32.0 on a CPU (see its ORIGIN.md). */
const recorded: RecordedRow[] = readFileSync('test/fixtures/vllm-0.32.0-cpu/memory.jsonl', 'utf8')
  .trim()
  .split('\n')
  .flatMap((text) => {
    const line = recordLineSchema.parse(JSON.parse(text));
    if (line.type !== 'memory') return [];
    const { kind, rank, device, t_ns, bytes, point, source, blocks } = line;
    const [what, stage, ...detail] = kind.split(':');
    return [
      {
        what: what!,
        stage: stage ?? null,
        detail: detail.join(':') || null,
        rank,
        device,
        t_ns,
        bytes,
        point,
        source,
        blocks,
      },
    ];
  });
const architecture = readArchitecture({
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  hidden_size: 512,
  intermediate_size: 1408,
  num_hidden_layers: 4,
  num_attention_heads: 8,
  num_key_value_heads: 2,
  vocab_size: 6400,
  tie_word_embeddings: true,
});
const estimate = estimateMemory(architecture, {
  batchSize: 2,
  inputLen: 64,
  outputLen: 16,
  storage: floatStorage('bfloat16'),
});
const log = {
  ranks: [
    { rank: 0, kv_cache: { value: 2 ** 30, line: 'Explicitly set (1.0/23.54) GiB for KV cache on node 0.' } },
  ],
} as unknown as VllmLogFacts;

test('a recorded run: weights and pool equal the dimensions to the byte, other processes are software', () => {
  const { parts, gpu } = vllmHost(rowsOf({ recorded }), log, { estimate, kvHeadsKnown: true });
  const partOf = (component: string) => parts.find((part) => part.component === component)!;
  expect(gpu).toBeNull();
  // By hand: embedding (tied), 4 layers of q, k, v, o, three MLP matrices and two norms, and the last norm; 2 bytes
  // each.
  const layer = 512 * 512 * 2 + 512 * 128 * 2 + 3 * 512 * 1408 + 2 * 512;
  expect(partOf('model_weights')).toMatchObject({
    bytes: 2 * (6400 * 512 + 4 * layer + 512),
    confidence: 'high',
  });
  expect(partOf('kv_cache')).toMatchObject({ bytes: 2 ** 30, confidence: 'high' });
  expect(partOf('kv_cache').evidence).toContain(
    '1.074 GB of cache tensors (bfloat16); log: Explicitly set (1.0/23.54) GiB',
  );
  expect(partOf('framework_overhead')).toMatchObject({
    bytes: 914_599_936 + 13_418_496 + 12_636_160 + 907_444_224 + 381_247_488,
    confidence: 'medium',
  });
  expect(partOf('framework_overhead').evidence).toContain('front end 914.6 MB, helper 13.42 MB');
  // Resident memory of all processes at the end. The residual is the worker's heap.
  const resident = 2_066_001_920 + 914_599_936 + 13_418_496 + 12_636_160 + 907_444_224;
  const { residual_bytes, components } = breakdownOf(
    [{ gpu: null, parts, peakStage: null }],
    { bytes: resident, source: 'VmRSS', shared: false, listed: false },
    estimate,
  );
  expect(components.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(resident);
  expect(residual_bytes).toBeGreaterThan(0);
});

test('packed weights are computed with lower confidence, and an untouched pool takes no memory', () => {
  const rows = rowsOf({
    recorded: [
      memoryRow('weights:load:bfloat16', 10, { device: null }),
      memoryRow('packed:load:bfloat16', 90, { device: null }),
      ...[0, 1].flatMap((rank) => [
        memoryRow('kv_cache:end:bfloat16', 1000, { device: null, rank }),
        memoryRow('kv_resident:end', 4, { device: null, rank }),
      ]),
    ],
  });
  const { parts } = vllmHost(rows, null, { estimate: null, kvHeadsKnown: true });
  expect(parts.map(({ component, bytes, confidence }) => [component, bytes / 1e6, confidence])).toEqual([
    ['model_weights', 100, 'medium'],
    ['kv_cache', 8, 'high'],
  ]);
  expect(parts[1]!.evidence).toContain('of 2.000 GB of cache tensors');
});

test('vLLM without records of its workers: pool from its log, other components computed', () => {
  const { parts } = vllmHost(rowsOf(), log, { estimate, kvHeadsKnown: true });
  expect(parts.map(({ component, confidence }) => [component, confidence])).toEqual([
    ['model_weights', estimate.lines.find(({ component }) => component === 'model_weights')!.confidence],
    ['kv_cache', 'medium'],
    ['activations', 'low'],
  ]);
  expect(parts[1]).toMatchObject({ bytes: 2 ** 30 });
  const unlogged = vllmHost(rowsOf(), null, { estimate, kvHeadsKnown: false }).parts[1]!;
  // K and V, 4 layers, 2 KV heads of 64, 2 bytes, 2 × 64 tokens: the calculator's peak is at the end of prefill.
  expect(unlogged).toMatchObject({ bytes: 2 * 4 * 2 * 64 * 2 * 128, confidence: 'low' });
});
