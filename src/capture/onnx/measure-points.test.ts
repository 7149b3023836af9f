import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { beforeAll, expect, test } from 'vitest';
import { openDecoder } from '../../engines/onnx/decoder.js';
import { resolveModel } from '../../engines/onnx/model-source.js';
import type { OnnxModel } from '../../engines/onnx/onnx-model.js';
import { tinyConfig } from '../../facts/test-session.js';
import { recordLineSchema, type RecordLine } from '../../model/record.js';
import { testFolder } from '../../session/test-folder.js';
import { recordWriter } from '../record-writer.js';
import { measurePoints } from './measure-points.js';
import type { WorkloadPlan, WorkloadPoint, WorkloadProgress } from './plan.js';

const scratch = testFolder();
let model: OnnxModel;
beforeAll(async () => {
  const path = join(scratch, 'config.json');
  writeFileSync(path, JSON.stringify(tinyConfig));
  model = await resolveModel(path, { cacheDir: join(scratch, 'models') });
});

const point = (name: string, batchSize: number, inputLen: number, outputLen: number): WorkloadPoint => ({
  point: name,
  batchSize,
  inputLen,
  outputLen,
  repeats: 3,
});

/** Measures with the real engine in this process. */
async function measure(
  points: WorkloadPoint[],
  stopped: (reported: readonly WorkloadProgress[]) => boolean = () => false,
) {
  const path = join(scratch, `${Math.random()}.jsonl`);
  const record = recordWriter(path, 'bench-1');
  const decoder = await openDecoder(model, { threads: 1, contextLen: 64 });
  const plan = {
    model,
    points,
    seed: 7,
    launch: 1,
    firstIteration: 100,
    warmup: { min: 2, max: 4, within: 0.5 },
    profilePrefix: null,
  } satisfies Partial<WorkloadPlan>;
  const reported: WorkloadProgress[] = [];
  const warmMoments: number[] = [];
  const result = await measurePoints(decoder, plan, {
    record,
    stopped: () => stopped(reported),
    report: (progress) => reported.push(progress),
    onWarm: () => warmMoments.push(reported.length),
  });
  await decoder.release();
  const lines = readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => recordLineSchema.parse(JSON.parse(line)));
  return { result, reported, lines, warmMoments };
}

const linesOf = <T extends RecordLine['type']>(lines: RecordLine[], type: T) =>
  lines.filter((line): line is Extract<RecordLine, { type: T }> => line.type === type);

test('warms up small points first, then times all in turn; each ends with its outcome', async () => {
  const { lines, reported, result } = await measure([point('large', 4, 16, 4), point('small', 1, 8, 6)]);
  const requests = linesOf(lines, 'request');
  const warm = requests.filter(({ warmup }) => warmup).map((request) => request.point);
  expect(warm.slice(0, 2)).toEqual(['small', 'small']);
  expect(warm.slice(-2)).toEqual(['large', 'large']);
  expect(warm.length).toBe(result.warmupIterations);
  // Launch 1 starts one point later.
  const timed = requests.filter(({ warmup }) => !warmup);
  expect(timed.map((request) => request.point).join(' ')).toBe('small large large small small large');
  expect(requests.map(({ iteration }) => iteration)).toEqual(requests.map((_, i) => 100 + i));
  for (const request of timed) {
    expect([request.batch_size, request.input_len, request.output_len, request.launch]).toEqual(
      request.point === 'large' ? [4, 16, 4, 1] : [1, 8, 6, 1],
    );
  }
  // One prefill, output − 1 decode steps, and sampling of each token.
  const stages = linesOf(lines, 'stage').filter(({ iteration }) => iteration === timed[0]!.iteration);
  expect(stages.map(({ kind }) => kind)).toEqual([
    'prefill',
    'sampling',
    ...Array.from({ length: 5 }, () => ['decode', 'sampling']).flat(),
  ]);
  const ended = linesOf(lines, 'point');
  expect(ended.map((one) => [one.point, one.outcome, one.launch])).toEqual([
    ['small', 'measured', 1],
    ['large', 'measured', 1],
  ]);
  expect(ended.map((one) => one.warmup_iterations)).toEqual([
    warm.filter((name) => name === 'small').length,
    warm.filter((name) => name === 'large').length,
  ]);
  expect(reported.filter(({ type }) => type === 'point')).toHaveLength(2);
});

test.runIf(process.platform === 'linux')('memory of a point is its own, or not reported', async () => {
  // A cache of 64 × 60 tokens is 64 times that of the small point.
  const { lines } = await measure([point('large', 64, 48, 12), point('small', 1, 2, 2)]);
  const [small, large] = ['small', 'large'].map((name) =>
    linesOf(lines, 'point').find((one) => one.point === name)!,
  );
  expect(large!.memory_source).toMatch(/VmHWM/);
  const floor = (small!.memory_bytes ?? 0) + 64 * 60 * kvBytesPerToken();
  expect(large!.memory_bytes).toBeGreaterThan(floor);
});

/** Keys and values of every layer, float32. */
function kvBytesPerToken(): number {
  const { num_hidden_layers: layers, num_key_value_heads: heads } = tinyConfig;
  return 2 * layers * heads * (tinyConfig.hidden_size / tinyConfig.num_attention_heads) * 4;
}

test('only the point that runs out of memory fails, whether it is before the large ones or after', async () => {
  const { lines } = await measure([point('huge', 2 ** 33, 8, 8), point('fits', 1, 8, 4)]);
  const [huge, fits] = ['huge', 'fits'].map((name) =>
    linesOf(lines, 'point').find((one) => one.point === name)!,
  );
  expect([huge!.outcome, fits!.outcome]).toEqual(['out_of_memory', 'measured']);
  expect(huge!.text).toMatch(/no room for the KV cache of 8589934592 sequences of 16 tokens: Memory ran out/);
  expect(
    linesOf(lines, 'request').filter((request) => !request.warmup && request.point === 'fits'),
  ).toHaveLength(3);
});

test('a point that the model cannot run fails alone', async () => {
  const beyond = tinyConfig.max_position_embeddings;
  const { lines } = await measure([point('long', 1, beyond, 4), point('fits', 2, 8, 4)]);
  const [long, fits] = ['long', 'fits'].map((name) =>
    linesOf(lines, 'point').find((one) => one.point === name)!,
  );
  expect([long!.outcome, fits!.outcome]).toEqual(['failed', 'measured']);
  expect(long!.text!.length).toBeGreaterThan(20);
});

test('a profile (a point without a name) has no point lines, and its failure is thrown', async () => {
  const nameless = { ...point('', 1, 8, 4), point: null };
  const { lines, reported } = await measure([nameless]);
  expect(linesOf(lines, 'point')).toEqual([]);
  expect(linesOf(lines, 'request').every((request) => request.point === null)).toBe(true);
  expect(new Set(reported.map(({ type }) => type))).toEqual(new Set(['phase', 'iteration']));
  await expect(measure([{ ...nameless, batchSize: 2 ** 33 }])).rejects.toMatchObject({
    code: 'E_OUT_OF_MEMORY',
  });
});

test('warm-up ends only for an engine that warmed up', async () => {
  const huge = point('huge', 2 ** 33, 8, 4);
  const { warmMoments, reported } = await measure([huge]);
  expect(warmMoments).toEqual([]);
  expect(reported).not.toContainEqual({ type: 'phase', phase: 'timed' });
  expect((await measure([point('one', 1, 8, 4)], () => true)).warmMoments).toEqual([]);
  expect((await measure([huge, point('fits', 2, 8, 4)])).warmMoments).toHaveLength(1);
});

test('stopped: timed repeats are recorded, missing ones are reported', async () => {
  const timedSoFar = (reported: readonly WorkloadProgress[]) =>
    reported.filter((workloadProgress) => workloadProgress.type === 'iteration' && !workloadProgress.warmup)
      .length;
  const { lines, result } = await measure(
    [point('a', 1, 8, 4), point('b', 2, 8, 4)],
    (reported) => timedSoFar(reported) >= 3,
  );
  // Launch 1: b a, a b, b a.
  const timed = linesOf(lines, 'request').filter(({ warmup }) => !warmup);
  expect(timed.map((request) => request.point)).toEqual(['b', 'a', 'a']);
  expect(linesOf(lines, 'point').map(({ point: name, outcome, text }) => [name, outcome, text])).toEqual([
    ['a', 'stopped', 'Stopped after 2 of 3 timed repeats.'],
    ['b', 'stopped', 'Stopped after 1 of 3 timed repeats.'],
  ]);
  expect(result.warmupIterations).toBeGreaterThanOrEqual(4);
});
