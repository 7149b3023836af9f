import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type BenchOrder, benchPoint, type BenchProgress } from '../../model/bench.js';
import type { EngineRequest, PreparedEngine } from '../../model/engine.js';
import { recordLineSchema } from '../../model/record.js';
import { transformersEngine } from './engine.js';

const request: EngineRequest = {
  model: 'llama-24m',
  weights: null,
  dtype: null,
  device: null,
  threads: null,
  engineArgs: {},
  url: null,
  python: '/no/such/python',
};
const refused = (code: string) => expect.objectContaining({ code }) as Error;

test('rejects what cannot run before looking for Python', async () => {
  const prepare = (changes: Partial<EngineRequest>) => transformersEngine.prepare({ ...request, ...changes });
  await expect(prepare({ engineArgs: { mod: 'eager' } })).rejects.toThrow(refused('E_USAGE'));
  await expect(prepare({ dtype: 'int4' })).rejects.toThrow(refused('E_DTYPE'));
  await expect(prepare({ device: 'tpu' })).rejects.toThrow(refused('E_USAGE'));
  await expect(prepare({ model: 'llama-25m' })).rejects.toThrow(refused('E_MODEL_NOT_FOUND'));
  const folder = mkdtempSync(join(tmpdir(), 'inferscope-transformers-'));
  const t5 = {
    model_type: 't5',
    d_model: 64,
    d_kv: 16,
    d_ff: 128,
    num_layers: 2,
    num_heads: 4,
    vocab_size: 512,
  };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(t5));
  await expect(prepare({ model: folder, weights: 'random' })).rejects.toThrow(
    refused('E_MODEL_ARCHITECTURE'),
  );
  rmSync(folder, { recursive: true });
  await expect(prepare({})).rejects.toThrow(refused('E_ENGINE_MISSING'));
});

// npm run test:torch names a Python with torch and transformers.
const python = process.env['INFERSCOPE_TEST_TORCH_PYTHON'] ?? null;

describe.skipIf(python === null)('with torch on the CPU', { timeout: 180_000 }, () => {
  let folder: string;
  let prepared: PreparedEngine;
  const tiny = { model_type: 'llama', hidden_size: 64, intermediate_size: 128, num_hidden_layers: 2 };
  const more = {
    num_attention_heads: 4,
    num_key_value_heads: 2,
    vocab_size: 512,
    max_position_embeddings: 64,
  };

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'inferscope-transformers-'));
    writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...tiny, ...more }));
    prepared = await transformersEngine.prepare({
      ...request,
      model: folder,
      device: 'cpu',
      threads: 1,
      python,
    });
  }, 180_000);
  afterAll(() => rmSync(folder, { recursive: true }));

  const order = (points: BenchOrder['points'], changes: Partial<BenchOrder> = {}): BenchOrder => ({
    v: 1,
    execution_id: 'clean',
    launch: 0,
    first_iteration: 10,
    model: folder,
    weights: 'random',
    dtype: null,
    device: null,
    engine_args: {},
    points,
    repeats: 2,
    warmup: { min: 1, max: 2, within: 0.05 },
    device_work: true,
    seed: 0,
    ...changes,
  });

  async function launch(
    launchOrder: BenchOrder,
    abort = new AbortController(),
    onProgress?: (p: BenchProgress) => void,
  ) {
    const recordPath = join(folder, `${launchOrder.launch}.jsonl`);
    const progress: BenchProgress[] = [];
    const control = {
      recordPath,
      scratch: folder,
      signal: abort.signal,
      onProgress: (event: BenchProgress) => {
        progress.push(event);
        onProgress?.(event);
      },
    };
    const { failure, log } = await prepared.launch(launchOrder, control).ended;
    const text = readFileSync(recordPath, 'utf8').trim().split('\n');
    return { failure, log, progress, lines: text.map((line) => recordLineSchema.parse(JSON.parse(line))) };
  }

  test('describes the workload, with parameters counted by hand', () => {
    const { model, engine, threads } = prepared.workload;
    // embedding and head 512 · 64 each; per layer: q, o 64 · 64, k, v 64 · 32, three 64 · 128, two norms; the last
    // norm.
    const layer = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128 + 2 * 64;
    expect(model).toMatchObject({
      dtype: 'float32',
      weights: 'random',
      num_parameters: 2 * 512 * 64 + 2 * layer + 64,
    });
    expect(engine).toMatchObject({
      name: 'transformers',
      options: { mode: 'eager', sync: 'step', gpu: null },
    });
    expect(threads).toBe(1);
    expect(Object.keys(prepared.notMeasured)).toContain('device_time');
    expect(prepared.refusal(benchPoint([], 1, 60, 4))).toBeNull();
    expect(prepared.refusal(benchPoint([], 1, 60, 5))).toContain('64 tokens');
  });

  test('does not run a compiled step in windows that it cannot follow', async () => {
    const windowed = mkdtempSync(join(tmpdir(), 'inferscope-window-'));
    const config = { ...tiny, ...more, model_type: 'mistral', sliding_window: 12 };
    writeFileSync(join(windowed, 'config.json'), JSON.stringify(config));
    const prepare = (mode: string) =>
      transformersEngine.prepare({
        ...request,
        model: windowed,
        device: 'cpu',
        python,
        engineArgs: { mode },
      });
    const compiled = await prepare('compile');
    expect(compiled.refusal(benchPoint([], 1, 8, 4))).toBeNull();
    expect(compiled.refusal(benchPoint([], 1, 8, 5))).toContain('window of 12');
    expect((await prepare('eager')).refusal(benchPoint([], 1, 8, 5))).toBeNull();
    await expect(prepare('cudagraph')).rejects.toThrow(refused('E_USAGE'));
    rmSync(windowed, { recursive: true });
  });

  test('a launch leaves readable record lines for every repeat of every point', async () => {
    const points = [benchPoint(['latency'], 1, 8, 4), benchPoint(['throughput'], 2, 8, 4)];
    const { failure, progress, lines } = await launch(order(points));
    expect(failure).toBeNull();
    const requests = lines.filter((line) => line.type === 'request').filter(({ warmup }) => !warmup);
    expect(requests.map(({ iteration, point }) => [iteration, point])).toEqual([
      [10, 'b1-p8-o4'],
      [11, 'b2-p8-o4'],
      [12, 'b2-p8-o4'],
      [13, 'b1-p8-o4'],
    ]);
    expect(lines.find((line) => line.type === 'model')).toMatchObject({ threads: 1, weights: 'random' });
    expect(lines.filter((line) => line.type === 'point').map(({ outcome }) => outcome)).toEqual([
      'measured',
      'measured',
    ]);
    expect(progress.filter((event) => event.type === 'iteration' && !event.warmup)).toHaveLength(4);
    expect(progress.at(-1)).toEqual({ type: 'point', point: 'b2-p8-o4', outcome: 'measured', text: null });
  });

  test('abort ends it after the current iteration', async () => {
    const abort = new AbortController();
    const points = [benchPoint(['latency'], 1, 8, 4)];
    const launchOrder = order(points, { launch: 1, repeats: 100_000 });
    const { failure, lines } = await launch(launchOrder, abort, (event) => {
      if (event.type === 'iteration' && !event.warmup) abort.abort();
    });
    expect(failure).toBeNull();
    expect(lines.filter((line) => line.type === 'point')).toMatchObject([{ outcome: 'stopped' }]);
    expect(lines.at(-1)?.type).toBe('clock');
  });

  test('weights that cannot be read fail the launch with what, why and fix', async () => {
    writeFileSync(join(folder, 'model.safetensors'), 'cut off');
    const broken = await transformersEngine.prepare({ ...request, model: folder, device: 'cpu', python });
    expect(broken.workload.model?.weights).toBe('trained');
    const signal = new AbortController().signal;
    const control = { recordPath: join(folder, '2.jsonl'), scratch: folder, signal, onProgress: () => {} };
    const { failure, log } = await broken.launch(order([benchPoint([], 1, 8, 4)], { launch: 2 }), control)
      .ended;
    expect(failure).toMatchObject({ code: 'E_WORKLOAD_FAILED' });
    expect(log).toContain('could not be loaded');
  });
});
