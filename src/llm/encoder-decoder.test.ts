import { describe, expect, it } from 'vitest';
import { readAnyArchitecture, readArchitecture } from './read-architecture.js';
import oracle from './oracle/encoder-decoders.json' with { type: 'json' };
import { crossKvBytesPerToken, kvCacheBytes } from './kv-cache.js';
import { estimateMemory } from './memory-estimate.js';
import { countParameters } from './parameters.js';
import { generationShape, type SourceShape, type StageShape } from './shape.js';
import { floatStorage } from './storage.js';
import { samplingOp, stageWork } from './work.js';
import { totalWork } from './work-totals.js';

const { batch, source } = oracle;
const f32 = floatStorage('float32');
const shapes: Record<SourceShape['step'], StageShape> = {
  encode: shapeOf('encode', 'prefill', source, 0),
  'encode-and-decode': shapeOf('encode-and-decode', 'prefill', 1, 0),
  first: shapeOf('first', 'decode', 1, 0),
  cached: shapeOf('cached', 'decode', 1, 1),
};

function shapeOf(
  step: SourceShape['step'],
  phase: StageShape['phase'],
  newTokens: number,
  contextTokens: number,
): StageShape {
  return { phase, batchSize: batch, newTokens, contextTokens, source: { step, tokens: source } };
}

const sumOf = (counts: Record<string, number>, ops: string[]): number =>
  ops.reduce((sum, op) => sum + (counts[op] ?? 0), 0);

describe('encoder-decoder models', () => {
  it.each([...Object.entries(oracle.models), ...Object.entries(oracle.tiny)])(
    '%s has the parameters that transformers has',
    (_, { config, parameters }) => {
      const count = countParameters(readAnyArchitecture(config));
      expect(count.total).toBe(parameters);
      expect(Object.values(count.by_component).reduce((a, b) => a + b, 0)).toBe(parameters);
    },
  );

  it('reads published numbers of parameters', () => {
    const totalOf = (name: keyof typeof oracle.models) =>
      countParameters(readAnyArchitecture(oracle.models[name].config)).total;
    // safetensors headers: t5-small 60 506 624; flan-t5-base 247 577 856; OpenAI: whisper tiny 39 M, large 1550 M.
    expect([totalOf('t5-small'), totalOf('flan-t5-base')]).toEqual([60_506_624, 247_577_856]);
    expect(totalOf('whisper-large-v3') / 1e6).toBeCloseTo(1543.49, 2);
  });

  it.each(Object.entries(oracle.tiny))('%s has the FLOPs that PyTorch counts', (_, { config, flops }) => {
    const a = readAnyArchitecture(config);
    for (const step of ['encode', 'first', 'cached'] as const) {
      const ops = stageWork(a, shapes[step], f32);
      const counts: Record<string, number> = flops[step];
      const attention = totalWork(ops.filter((op) => op.class === 'attention')).flops;
      expect([step, attention]).toEqual([step, sumOf(counts, ['bmm'])]);
      expect([step, totalWork(ops).flops - attention]).toEqual([
        step,
        sumOf(counts, ['mm', 'addmm', 'convolution']),
      ]);
      expect(Object.keys(counts).filter((op) => !['bmm', 'mm', 'addmm', 'convolution'].includes(op))).toEqual(
        [],
      );
    }
  });

  it.each(Object.entries(oracle.tiny))(
    '%s has the caches that transformers has after two steps',
    (_, { config, cache_bytes }) => {
      const a = readAnyArchitecture(config);
      const bytesOf = (contextTokens: number, sourceTokens: number) =>
        kvCacheBytes(a, { kvCache: 'float32', batchSize: batch, contextTokens, sourceTokens });
      expect(bytesOf(2, 0)).toBe(cache_bytes.self);
      expect(bytesOf(0, source)).toBe(cache_bytes.cross);
      expect(crossKvBytesPerToken(a, 'float32') * batch * source).toBe(cache_bytes.cross);
    },
  );

  it('estimates weights and both caches of transformers at the last decode step, on one device', () => {
    const { config, parameters, cache_bytes } = oracle.tiny.bart;
    const a = readAnyArchitecture(config);
    const request = { batchSize: batch, inputLen: source, outputLen: 2, storage: f32 };
    const { lines, peak } = estimateMemory(a, request);
    const bytesOf = (component: string) => lines.find((line) => line.component === component)?.bytes;
    expect(peak).toBe('decode');
    expect(bytesOf('model_weights')).toBe(4 * parameters);
    expect(bytesOf('kv_cache')).toBe(cache_bytes.self + cache_bytes.cross);
    expect(() => estimateMemory(a, { ...request, engine: 'vllm' })).toThrow('transformers on one device');
    expect(() => estimateMemory(a, { ...request, parallel: { tensor: 2 } })).toThrow('one device');
  });

  it('has a prefill of both stacks and decode steps that read the source', () => {
    const a = readAnyArchitecture(oracle.tiny.t5.config);
    const generation = { batchSize: batch, inputLen: source, generated: 0 };
    expect(generationShape(a, 'prefill', generation)).toEqual(shapes['encode-and-decode']);
    expect(generationShape(a, 'decode', generation)).toEqual(shapes.cached);
  });

  it('is the encoder and the first step if one call runs both', () => {
    const a = readAnyArchitecture(oracle.tiny.bart.config);
    const flopsOf = (step: SourceShape['step']) => totalWork(stageWork(a, shapes[step], f32)).flops;
    expect(flopsOf('encode-and-decode')).toBe(flopsOf('encode') + flopsOf('first'));
  });

  it('reads and writes its caches once', () => {
    const a = readAnyArchitecture(oracle.tiny.bart.config);
    const cacheOf = (step: SourceShape['step']) => {
      const { kv_read, kv_write } = totalWork(stageWork(a, shapes[step], f32)).bytes;
      return [kv_read, kv_write];
    };
    // Keys and values of a token in the 3 layers of the decoder, in 4 bytes.
    const perToken = 3 * 2 * 32 * 4;
    expect(cacheOf('encode')).toEqual([0, 0]);
    expect(cacheOf('first')).toEqual([0, batch * (source + 1) * perToken]);
    expect(cacheOf('cached')).toEqual([batch * (source + 1) * perToken, batch * perToken]);
  });

  it('reads the weights of what runs, and not the projections of the source again', () => {
    const a = readAnyArchitecture(oracle.tiny.t5.config);
    const weightsOf = (step: SourceShape['step']) =>
      totalWork(stageWork(a, shapes[step], f32)).bytes.weights / 4;
    const [D, inner, ff, buckets] = [32, 48, 48, 32 * 4];
    const attention = 4 * D * inner;
    const mlp = 2 * D * ff;
    expect(weightsOf('encode')).toBe(batch * source * D + 2 * (attention + mlp + 2 * D) + buckets + D);
    const first = batch * D + 2 * (2 * attention + mlp + 3 * D) + buckets + D + 101 * D;
    expect(weightsOf('first')).toBe(first);
    expect(weightsOf('cached')).toBe(first - 2 * 2 * D * inner);
  });

  it('samples no token after the encoder, and has no work without the length of the source', () => {
    const a = readAnyArchitecture(oracle.tiny.t5.config);
    const bytes = ({ step }: { step: SourceShape['step'] }) =>
      samplingOp(a, shapes[step], f32).bytes.activations_in;
    expect([bytes({ step: 'encode' }), bytes({ step: 'first' })]).toEqual([0, batch * 101 * 4]);
    const { source: _, ...shape } = shapes.first;
    expect(() => stageWork(a, shape, f32)).toThrow('source');
  });

  it('is refused where only decoders are computed', () => {
    expect(() => readArchitecture(oracle.tiny.t5.config)).toThrow('encoder-decoder');
  });

  it('reads every key of its configs that changes a size', () => {
    for (const { config } of Object.values(oracle.models))
      expect(readAnyArchitecture(config).unreadKeys).toEqual([]);
  });
});
