import { expect, test } from 'vitest';
import { figure } from '../../model/figure.js';
import { testBench } from '../test-bench.js';
import { benchText } from './bench.js';
import { textWidth } from './text.js';

const lineWith = (text: string, part: string) => text.split('\n').find((line) => line.includes(part));

test('the columns that the terminal has, at most 120, in words where there is no colour', () => {
  for (const columns of [80, 200]) {
    for (const document of [testBench(), testBench({ gpu: false, variants: 1 })]) {
      const lines = benchText(document, columns).split('\n');
      expect(lines.filter((line) => textWidth(line) > Math.min(120, columns))).toEqual([]);
    }
  }
});

test('intervals give way before the table is too wide', () => {
  const document = testBench({ variants: 1 });
  const wide = (of: { ci95: unknown; mean: number }) =>
    Object.assign(of, { ci95: [-4 * of.mean, 6 * of.mean] });
  for (const { latency } of document.data.variants[0]!.points) {
    for (const one of Object.values(latency)) if ('p50' in one) wide(one);
  }
  const text = benchText(document, 80);
  expect(text.split('\n').filter((line) => textWidth(line) > 80)).toEqual([]);
  // 200 prompt tokens: 20.8 ms.
  expect(text).toMatch(/^ +200 +50 +20\.8 ms +22\.\d ms/m);
});

test('what ran in a line, the parts as tables with units and intervals', () => {
  const document = testBench();
  const text = benchText(document, 80);
  expect(text.replaceAll('\n', ' ')).toContain(
    'TinyLlama-1.1B (random weights, bfloat16) · transformers 4.57.1 on NVIDIA H200',
  );
  expect(text).toContain('3 launches ×\n5 repeats');
  expect(text).toContain('Latency: batch 1, 128 in → 64 out');
  expect(lineWith(text, 'TTFT  ')).toMatch(/TTFT +[\d.]+ ms ± [\d.]+ .* 15/);
  const heads = lineWith(text, 'output tok/s')!;
  for (const head of ['batch', 'total', 'scaling', 'TPOT', 'util', 'idle', 'memory'])
    expect(heads).toContain(head);
  // Batch 8 gives eight times the tokens in steps as long.
  expect(text).toMatch(/^ +8 +\d+ ± \d+ .* 7\.9\d× +22\.\d ms/m);
  expect(text).toContain('mode=eager · 3 launches');
  expect(text).toContain('b32-p128-o64    out of memory: CUDA out of memory. Tried to allocate 2.00 GiB');
  expect(text).toContain('kv occupancy: the engine does not say how full its KV cache is');
  expect(text).toContain('What does twice the prompt cost?');
  expect(text).toContain('TTFT = 18.0 + 0.0120 × prompt tokens + 0.00000400 × prompt tokens² ms');
  expect(text.indexOf('mode=cudagraph is 1.6 times')).toBeGreaterThan(text.indexOf('Between variants'));
});

test('of a model that a server only names nothing stands in empty parentheses', () => {
  const document = testBench({ variants: 1 });
  Object.assign(document.data.engine, { model: 'tiny', weights: 'unknown', dtype: null, quantization: null });
  expect(benchText(document, 80).replaceAll('\n', ' ')).toContain('· tiny · transformers');
});

test('a slope that may be 0 is marked beside its fit', () => {
  const document = testBench({ variants: 1 });
  const fit = document.data.variants[0]!.fits.find(({ id }) => id === 'output')!;
  fit.coefficients_ci95 = [
    [1, 2],
    [-1, 1],
  ];
  expect(
    benchText(document, 80)
      .replaceAll(/\s+/g, ' ')
      .match(/slope not different from 0/g),
  ).toHaveLength(1);
});

test('a flag of several points is said once, warnings first', () => {
  const text = benchText(testBench({ variants: 1 }), 80);
  expect(text.match(/warning: The GPU does nothing/g)).toHaveLength(1);
  expect(text.replaceAll(/\s+/g, ' ')).toContain('(b1-p128-o64, b4-p128-o64, b8-p128-o64 and 7 more)');
  expect(text.indexOf('warning: The GPU')).toBeLessThan(text.indexOf('good: The device'));
});

test('without a GPU its columns are left out and the reason is told once', () => {
  const text = benchText(testBench({ gpu: false, variants: 1 }), 80);
  const heads = lineWith(text, 'output tok/s')!;
  expect(heads).not.toMatch(/util|idle|J\/token/);
  expect(heads).toContain('cores');
  expect(text).not.toContain('Against the roofline');
  expect(text.match(/there is no device to time/g)).toHaveLength(1);
});

test('names from files cannot steer the terminal; an unfinished run says so', () => {
  const document = testBench({ variants: 1 });
  document.data.engine.model = 'evil\u001B[2Jname';
  document.data.variants[0]!.points[0]!.text = 'bad\u001B]0;title\u0007';
  document.data.session.status = 'interrupted';
  document.data.variants[0]!.points[0]!.throughput.output_tokens_per_s = figure(1, 'tok/s', 'test');
  const text = benchText(document, 80);
  // eslint-disable-next-line no-control-regex
  expect(text).not.toMatch(/[\u0000-\u0009\u000B-\u001F]/);
  expect(text).toContain('The run was interrupted: these are the figures it left.');
});
