import { describe, expect, it } from 'vitest';
import type { InferscopeError } from '../model/errors.js';
import type { EstimatedComponent } from '../model/memory-components.js';
import { estimateMemory, type MemoryEstimate } from './memory-estimate.js';
import { largestFit } from './memory-fit.js';
import type { MemoryRequest, Parallelism } from './memory-request.js';
import { countParameters } from './parameters.js';
import { presetArchitecture, presets } from './presets.js';
import { quantizedWeights } from './quantization.js';
import { floatStorage } from './storage.js';

const request = (change: Partial<MemoryRequest> = {}): MemoryRequest => ({
  batchSize: 1,
  inputLen: 512,
  outputLen: 128,
  storage: floatStorage('bfloat16'),
  // memory-reserve.test.ts tests the simulation of the reserve.
  reserve: 'share',
  ...change,
});
const bytesOf = ({ lines }: MemoryEstimate, component: EstimatedComponent): number[] =>
  lines.find((line) => line.component === component)?.gpuBytes ?? [];
const gib = 2 ** 30;
const h200 = { name: 'NVIDIA H200', architecture: 'Hopper GH100', totalBytes: 143_771 * 2 ** 20 };

describe('one GPU', () => {
  it('a fitted constant states the number of fitted runs', () => {
    const formula = (component: EstimatedComponent, change: Partial<MemoryRequest>) =>
      estimateMemory(presetArchitecture('llama-3.1-8b'), request({ gpu: h200, ...change })).lines.find(
        (line) => line.component === component,
      )!.formula;
    expect(formula('cuda_context', {})).toMatch(/H200.* \(fitted to 6 runs\); .*\(fitted to 3 runs\)/);
    expect(formula('allocator_reserve', {})).toContain('(fitted to 6 runs)');
    const vllm = { engine: 'vllm', cudaGraphs: true } as const;
    expect(formula('framework_overhead', vllm)).toContain('(fitted to 4 runs)');
    expect(formula('cuda_graphs', vllm)).toContain('(fitted to 1 run)');
    expect(formula('framework_overhead', { engine: 'onnx', device: 'cpu' })).toContain('(fitted to 4 runs)');
    // Values stated in code were not fitted.
    expect(formula('framework_overhead', {})).toBe('cuBLAS workspace');
  });

  it('Llama-3.1 8B by hand: weights of its index, cache of 639 tokens, MLP of the prompt', () => {
    const estimate = estimateMemory(
      presetArchitecture('llama-3.1-8b'),
      request({ batchSize: 4, inputLen: 2048 }),
    );
    // total_size of its safetensors index.
    expect(bytesOf(estimate, 'model_weights')).toEqual([16_060_522_496]);
    // At prefill: 128 KiB per token; 4·D + 3·I of 2 bytes per token, cosines and sines of 128 per position.
    expect(estimate.peak).toBe('prefill');
    expect(bytesOf(estimate, 'kv_cache')).toEqual([4 * 2048 * 131_072]);
    expect(bytesOf(estimate, 'activations')).toEqual([
      4 * 2048 * 2 * (4 * 4096 + 3 * 14_336) + 2 * 2048 * 128 * 2,
    ]);
    expect(estimate.kvBytesPerToken).toBe(131_072);
    expect(estimate.totalBytes).toBe(estimate.lines.reduce((sum, { bytes }) => sum + bytes, 0));
    expect(estimate.fits).toBeNull();
  });

  it('in main memory: the same tensors, Python with torch, and no GPU memory', () => {
    const shape = request({ batchSize: 4, inputLen: 2048 });
    const [gpu, cpu] = (['gpu', 'cpu'] as const).map((device) =>
      estimateMemory(presetArchitecture('llama-3.1-8b'), { ...shape, device }),
    ) as [MemoryEstimate, MemoryEstimate];
    expect(cpu.lines.map(({ component }) => component)).toEqual([
      'model_weights',
      'kv_cache',
      'activations',
      'framework_overhead',
    ]);
    for (const component of ['model_weights', 'kv_cache', 'activations'] as const)
      expect(bytesOf(cpu, component)).toEqual(bytesOf(gpu, component));
    expect(bytesOf(cpu, 'framework_overhead')).toEqual([660e6]);
  });

  it('peaks at the last decode step if the output is long', () => {
    const estimate = estimateMemory(
      presetArchitecture('llama-2-7b'),
      request({ inputLen: 16, outputLen: 4000 }),
    );
    expect(estimate.peak).toBe('decode');
    // The last generated token is never cached.
    expect(bytesOf(estimate, 'kv_cache')).toEqual([(16 + 3999) * 524_288]);
  });

  it.each(presets.map(({ id }) => id))(
    '%s: components sum to the total, and more context takes more memory',
    (id) => {
      const a = presetArchitecture(id);
      const [short, long] = [256, 2048].map((inputLen) => estimateMemory(a, request({ inputLen })));
      expect(short!.totalBytes).toBe(short!.lines.reduce((sum, { bytes }) => sum + bytes, 0));
      expect(long!.totalBytes).toBeGreaterThan(short!.totalBytes);
      expect(bytesOf(short!, 'model_weights')).toEqual([2 * countParameters(a).total]);
    },
  );

  it("a header's bytes override the computed ones", () => {
    const headerWeights = { bytes: 123_456, source: 'header of x.safetensors' };
    const estimate = estimateMemory(presetArchitecture('gpt2'), request({ headerWeights }));
    expect(estimate.lines[0]).toMatchObject({ bytes: 123_456, formula: 'header of x.safetensors' });
  });
});

describe('several GPUs', () => {
  // Without vLLM's rounding of segments (memory-vllm.test.ts): version 0.9 splits them.
  const matrices = { engine: 'vllm', engineVersion: '0.9.2' } as const;
  const weightsOf = (id: string, parallel: Partial<Parallelism>, change: Partial<MemoryRequest> = {}) =>
    bytesOf(
      estimateMemory(presetArchitecture(id), request({ parallel, ...matrices, ...change })),
      'model_weights',
    );

  it('tensor parallel 2 of Llama-3.1 8B: half of every matrix, norms whole', () => {
    const norms = 65 * 4096;
    const rotary = 131_072 * 128 * 2;
    const half = 2 * ((8_030_261_248 - norms) / 2 + norms) + rotary;
    expect(weightsOf('llama-3.1-8b', { tensor: 2 })).toEqual([half, half]);
  });

  it('repeats KV heads when there are fewer than GPUs', () => {
    const a = presetArchitecture('llama-3.1-70b');
    const estimate = estimateMemory(a, request({ ...matrices, parallel: { tensor: 16 } }));
    // 8 KV heads on 16 GPUs: each one head, 2 · 80 · 128 · 2 B.
    expect(estimate.kvBytesPerToken).toBe(2 * 80 * 128 * 2);
    const kv = 80 * 2 * 128 * 8192;
    const split = 80 * (2 * 8192 * 8192 + 3 * 8192 * 28_672) + 2 * 128_256 * 8192;
    expect(bytesOf(estimate, 'model_weights')[0]).toBe(
      2 * (split / 16 + kv + 161 * 8192) + 131_072 * 128 * 2,
    );
  });

  it('pipelines: every layer once, embedding first, lm_head last; a tied embedding twice', () => {
    const parts = weightsOf('llama-2-7b', { pipeline: 4 });
    const rotary = 4096 * 128 * 2;
    expect(parts.reduce((sum, bytes) => sum + bytes, 0)).toBe(2 * 6_738_415_616 + 4 * rotary);
    expect(parts[0]! - parts[1]!).toBe(2 * 32_000 * 4096);
    const tied = presetArchitecture('llama-3.2-1b');
    const [first, last] = weightsOf('llama-3.2-1b', { pipeline: 2 });
    expect(first! + last! - 2 * 131_072 * 64 * 2).toBe(2 * (countParameters(tied).total + 128_256 * 2048));
  });

  it('spreads experts over the expert group and leaves attention to the tensor group', () => {
    // Mixtral 8x7B: 8 experts of 3·4096·14336 in 32 layers.
    const experts = 32 * 8 * 3 * 4096 * 14_336;
    const norms = 65 * 4096;
    const routers = 32 * 8 * 4096;
    const others = 46_702_792_704 - experts - norms - routers;
    const rotary = 32_768 * 128 * 2;
    const each = 2 * (experts / 4 + others / 4 + norms + routers) + rotary;
    expect(weightsOf('mixtral-8x7b', { tensor: 4 })).toEqual([each, each, each, each]);
    expect(weightsOf('mixtral-8x7b', { tensor: 4, expert: 4 })).toEqual([each, each, each, each]);
    const replicas = 2 * (experts / 8 + others + norms + routers) + rotary;
    expect(weightsOf('mixtral-8x7b', { tensor: 1, expert: 8 })).toEqual(Array(8).fill(replicas));
  });

  it("MLA's cache is complete on each GPU", () => {
    const estimate = estimateMemory(
      presetArchitecture('deepseek-v3'),
      request({
        engine: 'vllm',
        parallel: { tensor: 8, expert: 8 },
        storage: { ...floatStorage('bfloat16'), weights: quantizedWeights('fp8-block128', 'bfloat16') },
      }),
    );
    expect(estimate.kvBytesPerToken).toBe(70_272);
    // 671 GB divided by eight; attention's small projections, routers and norms are not divided.
    expect(bytesOf(estimate, 'model_weights')[0]! / 1e9).toBeGreaterThan(673 / 8);
    expect(bytesOf(estimate, 'model_weights')[0]! / 1e9).toBeLessThan(673 / 8 + 3);
  });

  it.each([
    [{ tensor: 3 }, 'llama-2-7b', '32 attention heads'],
    [{ pipeline: 33 }, 'llama-2-7b', '32 layers'],
    [{ expert: 2 }, 'llama-2-7b', 'no experts'],
    [{ expert: 3 }, 'mixtral-8x7b', '8 experts'],
    [{ tensor: 1.5 }, 'llama-2-7b', '1.5'],
  ])('rejects %j for %s', (parallel, id, words) => {
    expect(() => estimateMemory(presetArchitecture(id), request({ parallel }))).toThrow(
      expect.objectContaining({
        code: 'E_USAGE',
        parts: expect.objectContaining({ what: expect.stringContaining(words) }) as InferscopeError['parts'],
      }),
    );
  });
});

describe('windows', () => {
  it('keeps the whole length without a hybrid allocator, and the window with one', () => {
    const a = presetArchitecture('gemma-3-27b');
    const shape = { inputLen: 40_000, outputLen: 0, maxModelLen: 131_072, maxNumBatchedTokens: 8192 };
    const vllm = (hybridCache: boolean) =>
      estimateMemory(a, request({ engine: 'vllm', hybridCache, ...shape })).kvNeededBytes;
    expect(vllm(false)).toBe(62 * 8192 * 40_000);
    expect(vllm(true)).toBe((10 * 40_000 + 52 * 9215) * 8192);
    // transformers keeps a view of the whole prompt until the first decode step, and only the window afterwards.
    const estimate = estimateMemory(a, request({ ...shape, outputLen: 2 }));
    expect([estimate.peak, estimate.kvNeededBytes]).toEqual(['prefill', 62 * 8192 * 40_000]);
    const generated = estimateMemory(a, request({ inputLen: 8, outputLen: 40_000 }));
    expect([generated.peak, generated.kvNeededBytes]).toEqual(['decode', (10 * 40_007 + 52 * 1024) * 8192]);
  });
});

it('the place of the peak has the name that layers have', () => {
  const { lines } = estimateMemory(presetArchitecture('llama-3.1-70b'), request());
  expect(lines.find(({ component }) => component === 'activations')!.formula).toContain('in prefill (MLP);');
});

it('a model of states has no attention and no rotary tables at its peak', () => {
  const a = presetArchitecture('mamba-2.8b');
  const activations = estimateMemory(a, request()).lines.find(
    ({ component }) => component === 'activations',
  )!;
  expect(activations.formula).toBe(
    'N·b·(3·D + P + 2·CC), in prefill (recurrence); N: new tokens of all sequences, b: bytes per element, D: hidden size, P: outputs of the input projection, CC: channels of the convolution',
  );
  // Hidden size 2560; 5120 channels, which the projection outputs twice.
  expect(activations.gpuBytes[0]! / (512 * 2 * (3 * 2560 + 2 * 5120 + 2 * 5120))).toBeCloseTo(1, 2);
});

describe('vLLM', () => {
  it('the pool is the remainder of utilization × total', () => {
    const estimate = estimateMemory(
      presetArchitecture('llama-3.1-8b'),
      request({ engine: 'vllm', gpu: h200 }),
    );
    const inside = (['model_weights', 'activations', 'framework_overhead', 'kv_cache'] as const).reduce(
      (sum, component) => sum + bytesOf(estimate, component)[0]!,
      0,
    );
    // A share of cudaMemGetInfo's total, not of NVML's.
    expect(inside).toBeCloseTo(139.8 * gib * 0.9, -1);
    expect(estimate.kvPool!.tokens).toBe(Math.floor(bytesOf(estimate, 'kv_cache')[0]! / 131_072 / 16) * 16);
    expect(estimate.fits).toBe(true);
  });

  it('does not fit if weights exceed its share', () => {
    const gpu = { name: null, totalBytes: 16 * gib };
    const estimate = estimateMemory(presetArchitecture('llama-3.1-8b'), request({ engine: 'vllm', gpu }));
    expect(estimate.fits).toBe(false);
    expect(estimate.kvPool!.tokens).toBe(0);
  });
});

describe('largestFit', () => {
  it.each(['transformers', 'vllm'] as const)('%s: the largest fits and one more does not', (engine) => {
    const a = presetArchitecture('llama-2-7b');
    const baseRequest = request({ engine, gpu: { name: null, totalBytes: 24 * gib }, outputLen: 16 });
    const { batchSize, contextTokens } = largestFit(a, baseRequest);
    expect(estimateMemory(a, { ...baseRequest, batchSize: batchSize! }).fits).toBe(true);
    expect(estimateMemory(a, { ...baseRequest, batchSize: batchSize! + 1 }).fits).toBe(false);
    // 4096 positions fit easily.
    expect(contextTokens).toBe(4096);
    const longer = largestFit(a, { ...baseRequest, maxModelLen: 1_000_000 }).contextTokens!;
    const fits = (tokens: number) =>
      estimateMemory(a, { ...baseRequest, maxModelLen: 1_000_000, inputLen: tokens - 16 }).holdsBatch;
    expect([fits(longer), fits(longer + 1)]).toEqual([true, false]);
  });

  it('is 0 if nothing fits and null if the GPU is unknown', () => {
    const a = presetArchitecture('llama-2-70b');
    expect(largestFit(a, request({ gpu: { name: null, totalBytes: 24 * gib } })).batchSize).toBe(0);
    expect(largestFit(a, request()).batchSize).toBeNull();
  });
});
