import { expect, test, vi } from 'vitest';
import { workloadModel } from '../facts/model-work.js';
import { roofsOfGpu } from '../facts/predict/device-roofs.js';
import { predict } from '../facts/predict/predict.js';
import { analyzeUtilization } from '../facts/utilization/utilization.js';
import { countParameters } from '../llm/parameters.js';
import { findPreset } from '../llm/presets.js';
import type { Workload } from '../model/manifest.js';
import { createSession } from '../session/create.js';
import { openSession, type Session } from '../session/open.js';
import { testHome } from '../session/test-folder.js';
import { summary } from '../session/test-session.js';
import { estimateDocument as estimateOf } from './estimate.js';
import { predictDocumentOf } from './predict-run.js';

const home = testHome();
const batch = 4;
const cached = 130;

/** A decode step of 4 sequences with 130 tokens cached each, as a session recorded it. */
async function decodeStepSession(
  engine: Workload['engine'],
  model: NonNullable<Workload['model']>,
): Promise<Session> {
  const writer = await createSession({ home, label: 'step', kind: 'run' });
  const [execution, capture] = [summary.executions[0]!, summary.captures[0]!];
  writer.sink.append('stages', {
    execution_id: execution.execution_id,
    capture_id: capture.capture_id,
    host: 'h',
    pid: 7,
    tid: 7,
    rank: 0,
    stage_id: 1,
    kind: 'decode',
    start_ns: 0,
    end_ns: 2e6,
    iteration: 0,
    step_index: 0,
    warmup: false,
    batch_size: batch,
    new_tokens: batch,
    context_tokens_sum: batch * (cached + 1),
  });
  const workload: Workload = {
    model,
    engine,
    device: 'cuda',
    threads: null,
    batch_size: batch,
    input_len: cached,
    output_len: 2,
    tensor_parallel_size: 1,
  };
  const { id } = await writer.finish({
    ...summary,
    hardware: { gpu_name: 'NVIDIA H200' },
    workload,
    executions: [execution],
    captures: [capture],
  });
  return openSession(id, home);
}

const model = (id: string, more: Partial<NonNullable<Workload['model']>> = {}) => ({
  name: id,
  config: findPreset(id)!.config,
  dtype: 'bfloat16',
  quantization: null,
  weights: 'random' as const,
  num_parameters: null,
  weight_bytes: null,
  ...more,
});

function estimateLayers(id: string, quantization?: 'fp8-row' | 'awq-int4-g128', kv?: 'float8') {
  return estimateOf({
    model: id,
    layers: true,
    batchSize: [batch],
    inputLen: [cached],
    outputLen: [2],
    phase: 'decode',
    engine: 'vllm',
    tensorParallelSize: 1,
    pipelineParallelSize: 1,
    expertParallelSize: 1,
    dtype: 'bfloat16',
    ...(quantization ? { quantization } : {}),
    ...(kv ? { kvCacheDtype: kv } : {}),
  });
}

async function estimateTotals(...args: Parameters<typeof estimateLayers>) {
  const { data } = await estimateLayers(...args);
  return {
    parameters: data.parameters.total,
    flops: data.layers!.total.flops,
    bytes: data.layers!.total.bytes,
  };
}

async function utilizationTotals(session: Session) {
  const [stage] = (await analyzeUtilization(session)).data.stages;
  return { flops: stage!.flops.value, bytes: stage!.bytes.value };
}

/** The decode step of a typed configuration, as in `predict --model`. */
async function predictModelTotals(name: string) {
  vi.stubEnv('INFERSCOPE_HOME', home.root);
  try {
    const { data } = await predictDocumentOf({
      model: name,
      gpu: 'H200',
      kernels: [],
      batchSize: [batch],
      inputLen: [cached],
      outputLen: 2,
    });
    const step = data.stages.find(({ phase }) => phase === 'decode')!;
    return { parameters: data.model.parameters, flops: step.flops, bytes: step.bytes };
  } finally {
    vi.unstubAllEnvs();
  }
}

/** The decode step of the model that a session ran, as in `predict --session`. */
function predictSessionTotals({ manifest }: Session) {
  const found = workloadModel(manifest.workload!);
  if ('reason' in found) throw new Error(found.reason.text);
  const { stages } = predict({
    model: found,
    roofs: roofsOfGpu('NVIDIA H200', null),
    points: [
      {
        batchSize: batch,
        inputLen: cached,
        outputLen: 2,
        launch: 'eager',
        fusion: 'standard',
        measured: [],
      },
    ],
    table: null,
  });
  const step = stages.find(({ phase }) => phase === 'decode')!;
  return {
    parameters: countParameters(found.architecture).total,
    flops: step.flops,
    bytes: step.bytes,
  };
}

test.each(['llama-3.1-8b', 'mixtral-8x7b', 'deepseek-v2-lite'])(
  '%s: estimate, predict and utilization count the same FLOPs, bytes and parameters',
  async (id) => {
    const expected = await estimateTotals(id);
    const session = await decodeStepSession(
      { name: 'transformers', version: '5.17', options: {} },
      model(id),
    );
    expect(await predictModelTotals(id)).toEqual(expected);
    expect(predictSessionTotals(session)).toEqual(expected);
    const { flops, bytes } = await utilizationTotals(session);
    // Operations are summed by name here: the same numbers in another order.
    expect(flops! / expected.flops).toBeCloseTo(1, 12);
    expect(bytes! / expected.bytes).toBeCloseTo(1, 12);
  },
);

test('a decode step of Mixtral reads the experts that its batch is expected to use', async () => {
  // Each expert 3 × 4096 × 14336 weights, in 32 layers; 8·(1 − (6/8)^4) = 5.46875 of 8 are used.
  const expert = 3 * 4096 * 14_336 * 2;
  const idle = 32 * (8 - 5.468_75) * expert;
  // All 46 702 792 704 parameters except the embedding table, of which only four rows are read.
  const weights = 2 * (46_702_792_704 - 32_000 * 4096) - idle + batch * 4096 * 2;
  const { layers } = (await estimateLayers('mixtral-8x7b')).data;
  expect(layers!.total.weight_bytes).toBeCloseTo(weights, 0);
});

test.each([
  ['fp8', 'fp8-row', {}, undefined],
  ['awq', 'awq-int4-g128', { kv_cache_dtype: 'fp8_e4m3' }, 'float8'],
] as const)(
  "vLLM with %s: the engine's own storage in utilization and predict, scales included",
  async (quantization, scheme, options, kv) => {
    const expected = await estimateTotals('llama-3.1-8b', scheme, kv);
    const session = await decodeStepSession(
      { name: 'vllm', version: '0.26.0', options },
      model('llama-3.1-8b', { quantization }),
    );
    expect(predictSessionTotals(session)).toEqual(expected);
    const { bytes } = await utilizationTotals(session);
    expect(bytes! / expected.bytes).toBeCloseTo(1, 12);
  },
);

test('the storage format follows the quantization that a checkpoint declares, whatever the engine calls it', async () => {
  const declared = {
    ...findPreset('llama-3.1-8b')!.config,
    quantization_config: { quant_method: 'gptq', bits: 4, group_size: 32 },
  };
  const session = await decodeStepSession(
    { name: 'vllm', version: '0.26.0', options: {} },
    model('llama-3.1-8b', { config: declared, quantization: 'gptq_marlin' }),
  );
  const awq = await estimateTotals('llama-3.1-8b', 'awq-int4-g128');
  const { bytes } = await utilizationTotals(session);
  // 6 979 321 856 weights in the layers' matrices, 2.5 bytes per group of 32 instead of 128.
  expect(bytes! - awq.bytes).toBeCloseTo(6_979_321_856 * 2.5 * (1 / 32 - 1 / 128), -3);
});
