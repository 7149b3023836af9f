import { expect, test } from 'vitest';
import { readAnyArchitecture } from '../../llm/read-architecture.js';
import { floatStorage } from '../../llm/storage.js';
import { stageWork } from '../../llm/work.js';
import type { StageKernel, StagePlan } from './fused-kernel.js';
import oracle from './oracle/encoder-decoder-kernels.json' with { type: 'json' };
import { stageKernels } from './stage-kernels.js';

type Step = 'encode' | 'first' | 'step';
const names = Object.keys(oracle.models) as (keyof typeof oracle.models)[];

const modelOf = (name: (typeof names)[number], dtype: 'bfloat16' | 'float32') => ({
  architecture: readAnyArchitecture(oracle.models[name].config),
  storage: floatStorage(dtype),
});

function planOf(step: Step, tokens: number): StagePlan {
  const shape =
    step === 'encode'
      ? { newTokens: tokens, contextTokens: 0, source: { step, tokens } }
      : {
          newTokens: 1,
          contextTokens: step === 'first' ? 0 : 2,
          source: { step: step === 'first' ? step : ('cached' as const), tokens },
        };
  const phase = step === 'step' ? 'decode' : 'prefill';
  return { shape: { phase, batchSize: 4, ...shape }, fusion: 'none', launch: 'eager', reserved: null };
}

const countOf = (kernels: readonly StageKernel[]) =>
  kernels.reduce((sum, { op, launches, count }) => sum + (op === 'sample' ? 0 : launches * count), 0);

test.each(names.flatMap((name) => [[name, 'bfloat16'] as const, [name, 'float32'] as const]))(
  'unfused kernels of %s in %s equal those that transformers launches on an H200',
  (name, dtype) => {
    const counts = Object.fromEntries(
      (['encode', 'first', 'step'] as const).map((step) => [
        step,
        countOf(stageKernels(modelOf(name, dtype), planOf(step, name === 'whisper' ? 1500 : 200))),
      ]),
    );
    expect(counts).toEqual(oracle.models[name][dtype]);
  },
);

test.each(names)('unfused kernels of %s have the FLOPs of its operations, and move more bytes', (name) => {
  const model = modelOf(name, 'bfloat16');
  for (const step of ['encode', 'first', 'step'] as const) {
    const plan = planOf(step, 200);
    const sums = (kernels: readonly StageKernel[]) => ({
      flops: kernels.reduce((sum, kernel) => sum + kernel.flops * kernel.count, 0),
      bytes: kernels.reduce((sum, kernel) => sum + kernel.bytes * kernel.count, 0),
    });
    const unfused = sums(stageKernels(model, plan));
    const fused = sums(stageKernels(model, { ...plan, fusion: 'standard' }));
    const work = stageWork(model.architecture, plan.shape, model.storage);
    expect(unfused.flops / work.reduce((sum, op) => sum + op.flops, 0)).toBeCloseTo(1, 9);
    expect(unfused.bytes).toBeGreaterThan(fused.bytes);
  }
});

test("T5's attention without fusion, by hand", () => {
  const kernels = stageKernels(modelOf('t5', 'bfloat16'), planOf('step', 200));
  // 4 sequences, 8 heads × 64, 3 keys with the new one; 6 layers.
  const [q, kv, scores] = [4 * 512, 4 * 3 * 512, 4 * 8 * 3];
  const attention = kernels.filter(({ op, kernel }) => op === 'attention' && kernel !== 'gemm');
  expect(attention.reduce((sum, { bytes, count }) => sum + bytes * count, 0)).toBe(
    // Query, keys and values to float32; query and keys scaled; scores + bias, softmax, check for empty rows (a byte each), its reduction,
    // the choice, back to bfloat16; output back to bfloat16.
    6 * (6 * (q + 2 * kv) + 8 * (q + kv) + (12 + 8 + 5 + 1 + 9 + 6) * scores + 6 * q),
  );
});
