import { afterEach, expect, test } from 'vitest';
import { readArchitecture } from '../../llm/read-architecture.js';
import { floatStorage, weightBytes } from '../../llm/storage.js';
import { launchBoundChange } from './launch-changes.js';
import { exposedCommunication } from './rules/exposed-communication.js';
import { gemm, run } from './rules/test-device-rules.js';
import { closeAll, contextOf, fired, repeated, stepRows } from './test-steps.js';

afterEach(closeAll);

const model = {
  architecture: readArchitecture({
    model_type: 'llama',
    hidden_size: 256,
    intermediate_size: 512,
    num_hidden_layers: 4,
    num_attention_heads: 8,
    vocab_size: 1000,
  }),
  storage: floatStorage('bfloat16'),
};
const weights = weightBytes(model.architecture, model.storage).total;

/** Steps of rank 0 of two, which gathers `bytes` from both in four calls. */
async function gathering(bytes: number, kind = 'decode') {
  const rows = stepRows(kind, 3, () =>
    repeated(4, [gemm(100), run(40, 'communication', 'ncclDevKernel_AllGather_RING_LL')]),
  );
  const collectives = rows.kernels
    .filter((row) => row.class === 'communication')
    .map(({ start_ns = 0, dur_ns = 0, stage_id = 0 }, index) => ({
      rank: 0,
      device: 0,
      communicator: 'c',
      ranks: 2,
      operation: 'AllGather',
      sequence: index,
      bytes: bytes / 4 / 2,
      start_ns,
      dur_ns,
      stage_id,
      exposed_ns: dur_ns,
    }));
  return { ...(await contextOf({ ...rows, collectives })), model };
}

test('weights gathered in every step can be kept; graphs need them whole', async () => {
  const context = await gathering(0.75 * weights);
  const finding = fired(await exposedCommunication.find(context));
  expect(finding.change.example).toBe('fully_shard(layer, reshard_after_forward=False)');
  expect(finding.evidence[1]!.rows).toEqual([{ rank: 0, bytes: 0.75 * weights, gathers: 4 }]);
  expect(finding.evidence[1]!.text).toContain('75 % of the weights');
  // All of the exposed exchange: 4 x 40 µs.
  expect(finding.gain!.expected_ms).toBeCloseTo(0.16, 6);
  const change = await launchBoundChange(context, { kind: 'decode', graph_launches: 0 });
  expect(change.text).toContain('without FSDP');
});

test('smaller all-gathers are activations', async () => {
  const context = await gathering(0.1 * weights);
  const finding = fired(await exposedCommunication.find(context));
  expect(finding.change.example).toContain('all_reduce');
  expect(finding.gain!.expected_ms).toBeCloseTo(0.08, 6);
  const change = await launchBoundChange(context, { kind: 'decode', graph_launches: 0 });
  expect(change.text).not.toContain('FSDP');
});

test('a prefill alone is not judged: its activations can have as many bytes', async () => {
  const finding = fired(await exposedCommunication.find(await gathering(2 * weights, 'prefill')));
  expect(finding.change.example).toContain('all_reduce');
});
