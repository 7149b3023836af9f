import { expect, test } from 'vitest';
import { figure } from '../../model/figure.js';
import { testBench } from '../../views/test-bench.js';
import { testExplain } from '../../views/test-explain.js';
import { testServing } from '../../views/test-serving.js';
import { formatNumber, formatQuantity } from '../../vocabulary/format.js';
import { benchPoints, headlineOf, loadPoints } from './headline.js';

test('the list line of a benchmark has time and throughput', () => {
  const { data } = testBench({ variants: 1 });
  const [variant] = data.variants;
  const rates = variant!.points.map(({ batch_size, throughput }) => ({
    batch: batch_size,
    rate: throughput.output_tokens_per_s.value ?? 0,
  }));
  const best = rates.toSorted((a, b) => b.rate - a.rate)[0]!;
  const explain = testExplain().data;
  const headline = headlineOf(explain)!.text;
  expect(headline).toMatch(/^decode 23\.3 ms\/step, \d+(\.\d+)?× roofline, GPU idle \d+ %$/);
  const withPoints = headlineOf(explain, benchPoints(data))!.text;
  expect(withPoints).toMatch(
    /^decode 23\.3 ms\/step, TTFT from [\d.]+ ms, up to [\d.\u00a0]+ tok\/s end to end at batch \d+, [\d.]+× roofline, GPU idle \d+ %$/,
  );
  const [, rate, batch] = /up to ([\d.\u00a0]+) tok\/s end to end at batch (\d+)/.exec(withPoints)!;
  expect(Number(batch)).toBe(best.batch);
  expect(Math.abs(Number(rate!.replaceAll('\u00a0', '')) / best.rate - 1)).toBeLessThan(0.005);
  const onePoint = { variants: [{ ...variant!, points: variant!.points.slice(0, 1) }] };
  expect(headlineOf(explain, benchPoints(onePoint))?.text).toContain(
    `${formatNumber(rates[0]!.rate)} tok/s end to end, `,
  );
});

test('the list line of a load test has its best TTFT and throughput', () => {
  const { points } = testServing().data;
  const text = headlineOf(testExplain().data, loadPoints({ points }))!.text;
  const times = points.flatMap(({ latency: { ttft } }) => ('p50' in ttft ? [ttft.p50] : []));
  expect(text).toContain(
    `, TTFT ${times.length > 1 ? 'from ' : ''}${formatQuantity(Math.min(...times), 'ms')}, `,
  );
  expect(text).toMatch(/ tok\/s end to end/);
});

test('a time under a profiler has another name than a clean time', () => {
  const [stage] = testExplain().data.stages;
  const clean_ms = figure(stage!.measured_ms.value!, 'ms', 'clean');
  expect(headlineOf({ stages: [stage!] })!.figure).toEqual({
    name: 'decode under a profiler',
    value: clean_ms.value,
    unit: 'ms',
  });
  expect(headlineOf({ stages: [{ ...stage!, clean_ms }] })!.figure.name).toBe('decode');
});

test('a range of the program has the label of its kind, not "other"', () => {
  const [stage] = testExplain().data.stages;
  expect(headlineOf({ stages: [{ ...stage!, kind: 'other' }] })!.text).toMatch(/^step 23\.3 ms, /);
});

test('a request of open-loop load says where its time starts', () => {
  const [stage] = testExplain().data.stages;
  const request = { ...stage!, kind: 'request' as const, from_schedule: true as const };
  expect(headlineOf({ stages: [request] })!.text).toMatch(/^request from schedule 23\.3 ms, /);
});
