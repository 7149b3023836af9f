import { afterAll, expect, test } from 'vitest';
import { gpuRoofs } from '../../../facts/roofs.js';
import { floatStorage } from '../../../llm/storage.js';
import { readArchitecture } from '../../../llm/read-architecture.js';
import type { Row } from '../../../model/tables.js';
import type { FindingContext } from '../rule.js';
import { closeAll, contextOf, fired, type Part, stepRows } from '../test-steps.js';
import { hostCopies } from './host-copies.js';
import { noKvCache } from './no-kv-cache.js';
import { padding } from './padding.js';
import { gemmPerSequence } from './gemm-per-sequence.js';

afterAll(closeAll);

const gemm = (us: number): Part => ({ kernel: us, more: { class: 'gemm', name: 'gemm', dtype: 'bf16' } });
/** Stages with the sizes that hooks record. */
const withSizes = (rows: ReturnType<typeof stepRows>, sizes: (step: number) => Row<'stages'>) => ({
  ...rows,
  stages: rows.stages.map((row, step) => ({ ...row, ...sizes(step) })),
});

test('reports padding as kernel time in proportion to the padded positions', async () => {
  const prefills = (padded: number) =>
    contextOf(
      withSizes(
        stepRows('prefill', 4, () => [gemm(1000)]),
        () => ({ batch_size: 8, new_tokens: 800, padding_tokens: padded }),
      ),
    );
  const finding = fired(await padding.find(await prefills(600)));
  expect(finding.gain!.expected_ms).toBeCloseTo(0.75, 6);
  expect(finding.evidence[0]!.text).toBe('8 prompts of 25 tokens on average, padded to 100');
  expect(await padding.find(await prefills(0))).toMatchObject({ outcome: 'not_fired' });
});

test('reports copies between stages as a finding of the whole run', async () => {
  const rows = stepRows('prefill', 3, () => [
    gemm(600),
    { copy: 300, more: { kind: 'HtoD', src_kind: 'pageable', bytes: 3e6 } },
  ]);
  // The copy follows the end of the marked stage.
  const copiesBetween = {
    ...rows,
    copies: rows.copies.map((row) => ({ ...row, stage_id: null })),
    stages: rows.stages.map((row) => ({
      ...row,
      end_ns: Number(row.end_ns) - 300_000,
      device_end_ns: Number(row.device_end_ns) - 300_000,
    })),
  };
  const finding = fired(await hostCopies.find(await contextOf(copiesBetween)));
  expect(finding.stage).toBeNull();
  // Two of three copies are between two stages.
  expect(finding.run_ms).toBeCloseTo(0.6, 6);
  expect(finding.gain!.expected_ms).toBeCloseTo(0.3, 6);
});

test('reports a missing KV cache if the recorded sizes of a step grow by the batch', async () => {
  const steps = (tokens: (step: number) => number) =>
    contextOf(
      withSizes(
        stepRows('decode', 8, () => [gemm(1000)]),
        (step) => ({ batch_size: 4, new_tokens: tokens(step) }),
      ),
    );
  expect(fired(await noKvCache.find(await steps((step) => 4 * (200 + step)))).title).toContain(
    'recomputes 204 tokens',
  );
  expect(await noKvCache.find(await steps(() => 4))).toMatchObject({ outcome: 'not_fired' });
});

const llama = readArchitecture({
  model_type: 'llama',
  vocab_size: 32_000,
  hidden_size: 4096,
  intermediate_size: 11_008,
  num_hidden_layers: 1,
  num_attention_heads: 32,
});

test('reports logits computed sequence by sequence if the last GEMM takes as long as 16 reads of its weights', async () => {
  const roofs = gpuRoofs('NVIDIA H200', null);
  const readUs = (32_000 * 4096 * 2 * 1e6) / roofs.roofBandwidth.value!;
  const prefills = async (us: number): Promise<FindingContext> => ({
    ...(await contextOf(
      withSizes(
        stepRows('prefill', 4, () => [gemm(500), gemm(us)]),
        () => ({ batch_size: 16, new_tokens: 1024, context_tokens_sum: 1024 }),
      ),
    )),
    model: { architecture: llama, storage: floatStorage('bfloat16') },
    roofs,
  });
  const finding = fired(await gemmPerSequence.find(await prefills(16 * readUs)));
  // The other traffic of one GEMM with 16 rows is less than a hundredth.
  expect(finding.gain!.expected_ms).toBeGreaterThan((14.9 * readUs) / 1e3);
  expect(finding.gain!.expected_ms).toBeLessThan((15 * readUs) / 1e3);
  expect(await gemmPerSequence.find(await prefills(1.2 * readUs))).toMatchObject({ outcome: 'not_fired' });
});
