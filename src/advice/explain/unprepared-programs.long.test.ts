import { expect, test } from 'vitest';
import { importSession } from '../../session/archive-import.js';
import { openSession } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { explainSession } from './explain.js';

testHome();

/** Bytes per ms of an H200 by its data sheet. */
const bandwidth = 4.8e9;

async function stagesOf(file: string) {
  const { id } = await importSession(`test/fixtures/${file}.tgz`);
  const { stages } = (await explainSession(await openSession(id))).data;
  return (kind: string) => stages.find((stage) => stage.kind === kind)!;
}

test('H200: continuous batching has the steps that the program asks for, and a roofline', async () => {
  const stage = await stagesOf('unprepared-h200/batches');
  // 24 requests of 32 tokens in one batch: a prefill and 31 decode steps, of which the first is warm-up.
  expect(stage('prefill').instances).toBe(1);
  expect(stage('decode')).toMatchObject({ instances: 30, new_tokens: 24 });
  // Weights of 16 layers and the head, and keys and values of 4058 tokens of prompts and 16.5 new ones per request.
  const layer = 2 * 2048 * 2048 + 2 * 2048 * 1024 + 3 * 2048 * 5632;
  const weights = 2 * (16 * layer + 2048 * 32_000);
  const cache = 2 * 2 * 1024 * 16 * (4058 + 24 * 16.5);
  const ratio = stage('decode').roofline_ms.value! / ((weights + cache) / bandwidth);
  // Activations add a little.
  expect(ratio).toBeGreaterThan(1);
  expect(ratio).toBeLessThan(1.05);
  // 4058 tokens at 989 TFLOP/s.
  const prefill = (2 * 4058 * 16 * layer) / 989e9;
  expect(stage('prefill').roofline_ms.value! / prefill).toBeGreaterThan(1);
  expect(stage('prefill').roofline_ms.value! / prefill).toBeLessThan(1.05);
});

test('H200: the decode steps of BART read the keys and values of the source', async () => {
  const stage = await stagesOf('unprepared-h200/bart');
  expect(stage('prefill').instances).toBe(2);
  // Two of three generations of 32 tokens, one step of which is the first with its context.
  expect(stage('decode')).toMatchObject({ instances: 63, new_tokens: 16 });
  // 12 layers: self-attention, query and output of cross-attention, two matrices of the MLP; the head.
  const weights = 2 * (12 * (4 + 2 + 8) * 1024 * 1024 + 50_265 * 1024);
  const source = 2 * 2 * 1024 * 12 * 16 * 800;
  const ratio = stage('decode').roofline_ms.value! / ((weights + source) / bandwidth);
  expect(ratio).toBeGreaterThan(1);
  expect(ratio).toBeLessThan(1.1);
});

test.each(['none', 'nsys'])(
  'H200: SGLang under %s has its batches, model and roofline',
  async (evaluator) => {
    const stage = await stagesOf(`sglang-h200/${evaluator}`);
    // Four calls of 32 tokens: 1 prefill and 31 decode steps each, and one that starts before the end of the requests is known. The
    // first call warms up, and so does the first step of each kind and context.
    expect(stage('prefill')).toMatchObject({ instances: 2, new_tokens: 8 * 256 });
    expect(stage('decode')).toMatchObject({ instances: 95, new_tokens: 8 });
    const layer = 2 * 2048 * 2048 + 2 * 2048 * 256 + 3 * 2048 * 5632;
    const weights = 2 * (22 * layer + 2048 * 32_000);
    const cache = 2 * 2 * 256 * 22 * 8 * (256 + 16.5);
    const ratio = stage('decode').roofline_ms.value! / ((weights + cache) / bandwidth);
    // Activations add a little.
    expect(ratio).toBeGreaterThan(1);
    expect(ratio).toBeLessThan(1.05);
    const prefill = (2 * 8 * 256 * 22 * layer) / 989e9;
    expect(stage('prefill').roofline_ms.value! / prefill).toBeGreaterThan(1);
    expect(stage('prefill').roofline_ms.value! / prefill).toBeLessThan(1.05);
  },
);

test('H200: the clean steps of SGLang have the time of the device, as the program measures it', async () => {
  const stage = await stagesOf('sglang-h200/none');
  // The program prints 0.055 s for a prefill and 32 decode steps, which include sampling and the host.
  const call = stage('prefill').measured_ms.value! + 32 * stage('decode').measured_ms.value!;
  expect(call / 55).toBeGreaterThan(0.9);
  expect(call / 55).toBeLessThan(1.01);
});
