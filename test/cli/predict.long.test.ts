import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { predictDocumentSchema } from '../../src/model/documents/predict.js';
import { inferscope, createSetup, widestLine } from './run-cli.js';

const setup = createSetup();
const parsePredict = (stdout: string) => predictDocumentSchema.parse(JSON.parse(stdout));

test('without a GPU uses the embedded engine’s roofline, next to a profile of the same model', () => {
  const sizes = ['--batch-size', '1', '--input-len', '16', '--output-len', '8'];
  const result = inferscope(setup, [
    'profile',
    '--model',
    setup.tiny,
    '--threads',
    '1',
    '--launches',
    '1',
    '--repeats',
    '2',
    '--quiet',
    ...sizes,
  ]);
  expect(result.status, result.stderr).toBe(0);
  const csv = join(setup.scratch, 'stages.csv');
  const predicted = inferscope(setup, ['predict', '--session', '@last', '--json', '--csv', csv]);
  expect(predicted.status, predicted.stderr).toBe(0);
  const { data } = parsePredict(predicted.stdout);
  // The planted roofline of test-session.ts: 100 GFLOP/s.
  expect(data.device).toMatchObject({ kind: 'cpu', roofs: 'measured', peak_flops_per_s: { value: 100e9 } });
  expect(
    data.stages.map(({ phase, batch_size, input_len, output_len }) => [
      phase,
      batch_size,
      input_len,
      output_len,
    ]),
  ).toEqual([
    ['prefill', 1, 16, 8],
    ['decode', 1, 16, 8],
  ]);
  for (const { measured, predicted_ms } of data.stages) {
    expect(measured[0]!.ms.value).toBeGreaterThan(0);
    expect(predicted_ms).toMatchObject({ value: null, reason: { code: 'no_kernel_table' } });
  }
  const rows = readFileSync(csv, 'utf8').trim().split('\n');
  expect(rows).toHaveLength(3);
  expect(rows[0]).toContain('roofline_ms');

  const text = inferscope(setup, ['predict', '--session', '@last']).stdout;
  expect(text).toContain('Predicted and measured');
  expect(widestLine(text)).toBeLessThanOrEqual(80);
}, 60_000);

test('uses the data sheet of a GPU that this machine does not have, and says so', () => {
  const { status, stdout, stderr } = inferscope(setup, [
    'predict',
    '--model',
    'llama-3.1-8b',
    '--gpu',
    'NVIDIA H200',
    '--batch-size',
    '1,32',
    '--input-len',
    '128,2048',
    '--json',
  ]);
  expect(status, stderr).toBe(0);
  const { data, issues } = parsePredict(stdout);
  expect(data.stages).toHaveLength(8);
  expect(issues.map(({ code }) => code)).toContain('data_sheet_roofs');
  // 8.03e9 parameters without the embedding, in bfloat16, at 4.8 TB/s: 3.13 ms per token.
  const step = data.stages.find(({ phase, batch_size }) => phase === 'decode' && batch_size === 1)!;
  expect(step.roofline_ms.value).toBeCloseTo(((8_030_261_248 - 128_256 * 4096) * 2) / 4.8e12 / 1e-3, 1);
});

test('warns of a model that one GPU cannot hold', () => {
  const codes = (model: string) =>
    parsePredict(
      inferscope(setup, ['predict', '--model', model, '--gpu', 'NVIDIA H200', '--json']).stdout,
    ).issues.map(({ code }) => code);
  // 2 bytes for each of 70.6e9 parameters are 141.1 GB of 141; for 8.03e9, 16 GB.
  expect(codes('llama-3.1-70b')).toContain('out_of_memory');
  expect(codes('llama-3.1-8b')).not.toContain('out_of_memory');
});

test.each([
  {
    what: 'an unknown GPU',
    args: ['--gpu', 'H9000'],
    code: 'E_USAGE',
    contains: 'inferscope roofline',
  },
  {
    what: 'a dtype without a peak',
    args: ['--gpu', 'NVIDIA A10', '--dtype', 'fp8'],
    code: 'E_DTYPE',
    contains: 'float8',
  },
  {
    what: 'more tokens than the context of the model',
    args: ['--gpu', 'NVIDIA A10', '--input-len', '2040'],
    code: 'E_LENGTHS',
    contains: 'exceed the context of tinyllama-1.1b',
  },
  {
    what: 'an empty batch',
    args: ['--gpu', 'NVIDIA A10', '--batch-size', '0'],
    code: 'E_USAGE',
    contains: '--batch-size',
  },
  {
    what: 'an unknown fusion',
    args: ['--gpu', 'NVIDIA A10', '--fusion', 'max'],
    code: 'E_USAGE',
    contains: 'standard',
  },
  {
    what: 'a file that is not a roofline',
    args: ['--roofline', 'notes.json'],
    code: 'E_USAGE',
    contains: 'roofline --json',
  },
  {
    what: 'kernels of an unknown session',
    args: ['--gpu', 'NVIDIA A10', '--kernels', 'none'],
    code: 'E_SESSION_NOT_FOUND',
    contains: 'none',
  },
])('rejects $what', ({ args, code, contains: expected }) => {
  writeFileSync(join(setup.scratch, 'notes.json'), '{"data":{}}');
  const { status, stdout, stderr } = inferscope(setup, [
    'predict',
    '--model',
    'tinyllama-1.1b',
    '--json',
    ...args,
  ]);
  expect(status).toBe(2);
  expect(JSON.parse(stdout)).toMatchObject({ schema: 'inferscope/error/1.0', data: { code } });
  expect(stderr + stdout).toContain(expected);
});

test('rejects a prediction without a model', () => {
  const { status, stderr } = inferscope(setup, ['predict', '--gpu', 'NVIDIA H200']);
  expect(status).toBe(2);
  expect(stderr).toContain('--model');
});
