import { expect, test } from 'vitest';
import { readArchitecture } from '../../llm/read-architecture.js';
import { modelCases } from '../../llm/kernel-model.js';
import { findPreset } from '../../llm/presets.js';
import { floatStorage } from '../../llm/storage.js';
import type { PredictStage } from '../../model/documents/predict.js';
import { homeFolders } from '../../session/home.js';
import { testFolder } from '../../session/test-folder.js';
import { exampleRoofline, tinyConfig, tinyWorkload } from '../test-session.js';
import { imported, fixture } from '../trace/test-import.js';
import { composeStage } from './compose.js';
import { checkPeak, roofsOfCpu, roofsOfGpu } from './device-roofs.js';
import type { MeasuredKernel } from './kernel-table.js';
import { type MeasuredStageTime, readMeasuredStages } from './measured.js';
import { pointsOf } from './points.js';
import { predict, type PredictPoint } from './predict.js';

const tiny = { architecture: readArchitecture(tinyConfig), storage: floatStorage('float32') };
const h200 = roofsOfGpu('NVIDIA H200', null);
const llama = {
  architecture: readArchitecture(findPreset('llama-3.1-8b')!.config),
  storage: floatStorage('bfloat16'),
};

const point = (change: Partial<PredictPoint> = {}): PredictPoint => ({
  batchSize: 2,
  inputLen: 4,
  outputLen: 2,
  launch: 'eager',
  fusion: 'standard',
  measured: [],
  ...change,
});

/** Every case of the model, at a share of its roof and with a fixed part. */
function table(
  model: typeof llama,
  batchSizes: number[],
  inputLens: number[],
  share = 0.7,
): MeasuredKernel[] {
  return modelCases(model.architecture, model.storage, { batchSizes, contextLens: inputLens }).cases.map(
    (testCase) => {
      const computes = testCase.kernel === 'gemm' || testCase.kernel === 'attention';
      const roof = Math.max(computes ? testCase.flops / 989e12 : 0, testCase.bytes / 4.8e12) * 1e9;
      return { ...testCase, ns: 2000 + roof / share, cpu: false, interval: null };
    },
  );
}

const decode = (stages: readonly PredictStage[]) => stages.find(({ phase }) => phase === 'decode')!;

test("the roofline of a tiny Llama's decode step, by hand", () => {
  // 100 GFLOP/s and, in the L2, 100 GB/s: every operation moves more bytes than it has FLOPs. Bytes of the operations
  // of stage-kernels.test.ts: 1280 + 2304 input norms, 2 layers of 217 344, 138 496 outside; sampling (4112) is outside
  // the model, so it is among the kernels only.
  const { stages, error } = predict({
    model: tiny,
    roofs: roofsOfCpu(exampleRoofline()),
    points: [point()],
    table: null,
  });
  const step = decode(stages);
  expect(step.bytes).toBe(1280 + 2304 + 2 * 217_344 + 138_496);
  expect(step.bound).toBe('memory');
  expect(step.roofline_ms.value).toBeCloseTo(5.76768e-3, 9);
  expect(step.roofline_serial_ms.value).toBeCloseTo(5.76768e-3, 9);
  // Nothing is launched on a CPU.
  expect(step.launched_ms.value).toBeCloseTo(5.8088e-3, 9);
  expect(step.predicted_ms).toMatchObject({ value: null, reason: { code: 'no_kernel_table' } });
  expect(error).toBeNull();
});

test('eager takes the longer of host and device; a graph takes at least one node per kernel', () => {
  const kernel = (launches: number, count: number) => ({
    op: 'x',
    class: 'other' as const,
    kernel: 'elementwise' as const,
    dtype: 'float16',
    params: {},
    flops: 0,
    bytes: 0,
    launches,
    count,
  });
  const kernels = [
    { kernel: kernel(1, 10), time: { ns: 500, method: 'measured' as const } },
    { kernel: kernel(2, 5), time: { ns: 8000, method: 'measured' as const } },
  ];
  const costs = { launch: 'eager' as const, hostPerLaunchNs: 1000, nodeNs: 1500, hostPerStageNs: 7000 };
  // Device 10 × 0.5 + 5 × 8 = 45 µs, host 20 launches × 1 µs.
  expect(composeStage(kernels, costs, 'eager')).toMatchObject({
    launches: 20,
    deviceNs: 45_000,
    totalNs: 52_000,
    limitedBy: 'device',
  });
  expect(composeStage(kernels, { ...costs, hostPerLaunchNs: 3000 }, 'eager')).toMatchObject({
    totalNs: 67_000,
    limitedBy: 'host',
  });
  // Graph: 10 × 1.5 + 5 × 8.
  expect(composeStage(kernels, costs, 'graph')).toMatchObject({ deviceNs: 55_000, totalNs: 62_000 });
});

test('the error includes the intervals of the measured kernels', () => {
  const points = [point({ batchSize: 1, inputLen: 128 })];
  const kernels = table(llama, [1], [128]);
  const errorWith = (interval: number) => {
    const known = kernels.map((kernel) => ({ ...kernel, interval }));
    return decode(predict({ model: llama, roofs: h200, points, table: known }).stages).predicted_error!;
  };
  const growth = errorWith(0.1) - errorWith(0);
  // Up to a tenth of the step, by its share of measured kernels.
  expect(growth).toBeGreaterThan(0.05);
  expect(growth).toBeLessThanOrEqual(0.1);
});

test("with a table: the model's own cases are measured ones, and no prediction is below the roofline", () => {
  const kernels = table(llama, [1, 8], [128, 2048]);
  const points = [1, 8].flatMap((batchSize) =>
    [128, 2048].flatMap((inputLen) =>
      (['standard', 'full', 'none'] as const).flatMap((fusion) =>
        (['eager', 'graph'] as const).map((launch) =>
          point({ batchSize, inputLen, outputLen: 2, fusion, launch }),
        ),
      ),
    ),
  );
  const { stages, validation } = predict({ model: llama, roofs: h200, points, table: kernels });
  // Graphs change the prefill only without fusion, where its cache is of a static size.
  expect(stages.filter(({ phase }) => phase === 'decode')).toHaveLength(points.length);
  expect(stages.filter(({ phase }) => phase === 'prefill')).toHaveLength(points.length - 8);
  for (const stage of stages) {
    expect(stage.predicted_ms.value!).toBeGreaterThan(stage.roofline_ms.value!);
    expect(stage.roofline_serial_ms.value!).toBeGreaterThanOrEqual(stage.roofline_ms.value! * (1 - 1e-12));
  }
  const standard = decode(
    stages.filter(({ fusion, batch_size }) => fusion === 'standard' && batch_size === 8),
  );
  const methods = Object.fromEntries(standard.ops.map(({ op, method }) => [op, method]));
  expect(methods).toMatchObject({
    qkv_proj: 'measured',
    attention: 'measured',
    lm_head: 'measured',
    sample: 'measured',
  });
  // 32 layers × (QKV, attention, O, gate + up, down) and lm_head, sampling: 2 µs each on top of 1/0.7 of the roofs.
  const gemmsAndAttention = standard.ops.filter(
    ({ class: opClass }) => opClass === 'gemm' || opClass === 'attention',
  );
  const expected = gemmsAndAttention.reduce(
    (sum, { count, roofline_us }) => sum + count * (2 + roofline_us / 0.7),
    0,
  );
  const predicted = gemmsAndAttention.reduce(
    (sum, { count, predicted_us }) => sum + count * predicted_us!,
    0,
  );
  expect(predicted / expected).toBeCloseTo(1, 3);
  expect(validation.map(({ kernel }) => kernel)).toContain('gemm');
  // More fusion launches and moves less.
  const predictedMs = (fusion: string) =>
    stages.find((stage) => stage.fusion === fusion && stage.phase === 'decode' && stage.launch === 'graph')!
      .predicted_ms.value!;
  expect(predictedMs('none')).toBeGreaterThan(predictedMs('standard'));
  expect(predictedMs('standard')).toBeGreaterThan(predictedMs('full'));
});

test('more context and more sequences are never faster', () => {
  const kernels = table(llama, [1, 8, 32], [128, 2048]);
  for (const fusion of ['none', 'standard'] as const) {
    for (const launch of ['eager', 'graph'] as const) {
      const stepMs = (batchSize: number, inputLen: number) => {
        const points = [point({ batchSize, inputLen, outputLen: 32, fusion, launch })];
        return predict({ model: llama, roofs: h200, points, table: kernels }).stages.map(
          ({ predicted_ms, roofline_ms }) => [predicted_ms.value!, roofline_ms.value!],
        );
      };
      const rising = (series: number[][][]) =>
        series
          .slice(1)
          .forEach((stages, index) =>
            stages.forEach((values, stage) =>
              values.forEach((value, position) =>
                expect(value).toBeGreaterThanOrEqual(series[index]![stage]![position]! * (1 - 1e-9)),
              ),
            ),
          );
      rising([16, 64, 128, 500, 1500, 2048, 6000].map((context) => stepMs(4, context)));
      rising([1, 2, 4, 8, 20, 32, 64].map((batch) => stepMs(batch, 1000)));
    }
  }
});

test("compared with a trace of Hugging Face's Llama on an H200: the roofline is lower, and the residual is fully named", async () => {
  const config = {
    ...tinyConfig,
    hidden_size: 512,
    intermediate_size: 1408,
    num_hidden_layers: 4,
    num_attention_heads: 8,
    head_dim: 64,
    vocab_size: 4096,
    max_position_embeddings: 1024,
    tie_word_embeddings: false,
  };
  const base = tinyWorkload();
  const workload = tinyWorkload({
    model: { ...base.model!, config, dtype: 'float16' },
    engine: { name: 'transformers', version: '5.17.0', options: { gpu: 'NVIDIA H200' } },
    device: 'cuda:0',
    batch_size: 1,
    input_len: 64,
    output_len: 5,
  });
  const home = homeFolders({ INFERSCOPE_HOME: testFolder() });
  const session = await imported(home, 'nsys-sqlite', fixture('nsys-2025.3.1-h200/tiny-nsys.sqlite'), {
    workload,
  });
  const measured = await readMeasuredStages(session, { batchSize: null, inputLen: null, outputLen: null });
  expect(measured.map(({ phase, launch, fusion }) => [phase, launch, fusion])).toEqual([
    ['prefill', 'eager', 'none'],
    ['decode', 'eager', 'none'],
  ]);
  const typed = { batchSizes: null, inputLens: null, outputLen: null, launch: null, fusion: null };
  const points = pointsOf(typed, measured, { launch: 'graph', fusion: 'standard' });
  expect(points).toHaveLength(1);
  const model = { architecture: readArchitecture(config), storage: floatStorage('float16') };
  const kernels = table(model, [1], [64]);
  const { stages, error } = predict({ model, roofs: h200, points, table: kernels });
  expect(error).toMatchObject({ stages: 2 });
  for (const stage of stages) {
    const [measurement] = stage.measured;
    expect(measurement!.above_measurement).toBe(false);
    expect(measurement!.roofline_ratio.value!).toBeLessThan(0.05);
    expect(measurement!.table_ratio.value!).toBeLessThan(1.1);
    const parts = measurement!.residual.reduce((sum, { ms }) => sum + ms, 0);
    expect(parts).toBeCloseTo(measurement!.ms.value! - stage.predicted_ms.value!, 9);
    expect(stage.limited_by).toBe('host');
  }
  // A profiled eager step waits for its host, so most of the residual is launches and the program.
  const step = decode(stages);
  const causes = Object.fromEntries(step.measured[0]!.residual.map(({ cause, ms }) => [cause, ms]));
  const waits = (causes['launch-bound'] ?? 0) + (causes['host'] ?? 0);
  expect(waits).toBeGreaterThan(0.5 * (step.measured[0]!.ms.value! - step.predicted_ms.value!));
  expect(step.kernels).toBe(182);
});

test('rejects a GPU without data sheet or measurement, and a dtype without a peak', () => {
  expect(() => roofsOfGpu('NVIDIA H300', null)).toThrow(expect.objectContaining({ code: 'E_USAGE' }));
  expect(() => checkPeak(roofsOfGpu('NVIDIA A10', null), 'float8')).toThrow(
    expect.objectContaining({ code: 'E_DTYPE' }),
  );
  expect(() => checkPeak(h200, 'bfloat16')).not.toThrow();
});

test('points come from typed sizes, else from measurements', () => {
  const untyped = { batchSizes: null, inputLens: null, outputLen: null, launch: null, fusion: null };
  const otherwise = { launch: 'graph', fusion: 'standard' } as const;
  expect(pointsOf(untyped, [], otherwise)).toMatchObject([
    { batchSize: 1, inputLen: 128, outputLen: 32, launch: 'graph' },
  ]);
  const time = {
    session: 's',
    batchSize: 4,
    inputLen: 64,
    outputLen: 8,
    fusion: 'none',
  } as MeasuredStageTime;
  const [prefillTime, decodeTime] = [
    { ...time, phase: 'prefill', launch: 'eager' } as const,
    { ...time, phase: 'decode', launch: 'graph' } as const,
  ];
  // One point: a prefill is not part of the graph of the decode steps.
  expect(pointsOf(untyped, [prefillTime, decodeTime], otherwise)).toMatchObject([
    { launch: 'graph', measured: [prefillTime, decodeTime] },
  ]);
  const typed = pointsOf(
    { ...untyped, batchSizes: [1, 8], inputLens: [128, 2048], fusion: 'none' },
    [],
    otherwise,
  );
  expect(typed.map(({ batchSize, inputLen, fusion }) => [batchSize, inputLen, fusion])).toEqual([
    [1, 128, 'none'],
    [1, 2048, 'none'],
    [8, 128, 'none'],
    [8, 2048, 'none'],
  ]);
});
