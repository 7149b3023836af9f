import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadResults } from './test-load.js';

/** Files that optimum-benchmark 0.6.0 wrote (see ORIGIN.md next to them); the text report is its own output. */
const fixturePath = (name: string) => join('test/fixtures/benchmark-results-recorded', `optimum-${name}`);
type Report = Record<string, { latency: { values: number[]; [statistic: string]: number | number[] } }>;
const report = JSON.parse(readFileSync(fixturePath('benchmark_report.json'), 'utf8')) as Report;
const stages = ['load_model', 'first_generate', 'generate', 'prefill', 'decode', 'per_token'];

describe('optimum-benchmark 0.6.0', () => {
  test('equals the statistics that it printed', async () => {
    const results = await loadResults(fixturePath('benchmark_report.json'));
    expect(results.importer).toBe('optimum-benchmark');
    const text = readFileSync(fixturePath('report.txt'), 'utf8');
    let point = -1;
    let checked = 0;
    for (const line of text.split('\n')) {
      if (/^\+ (\w+):/.test(line)) point++;
      const [, name, printed] =
        /\+ (mean|p50|p90|p95|p99|stdev|max_ram|throughput): ([\d.]+)/.exec(line) ?? [];
      if (name === undefined) continue;
      const stage = stages[point]!;
      const value = Number(printed);
      if (name === 'max_ram')
        expect(results.value(`optimum.${stage}_max_ram`, 'max', 'file', point) / 1e6).toBeCloseTo(value, 2);
      else if (name === 'throughput')
        expect(results.value(`optimum.${stage}_throughput`, 'value', 'file', point)).toBeCloseTo(value, 2);
      else if (name === 'stdev' && report[stage]!.latency.values.length === 1) continue;
      else {
        const statistic = { p50: 'median', stdev: 'sd_population' }[name] ?? name;
        expect(results.value(`optimum.${stage}_latency`, statistic, 'file', point) / 1000).toBeCloseTo(
          value,
          6,
        );
      }
      checked++;
    }
    expect(checked).toBe(41);
  });

  test('per_token: tokens repeat and include a whole prefill; counted once they sum to the decode', async () => {
    const results = await loadResults(fixturePath('benchmark_report.json'));
    expect(results.issues.map(({ code }) => code)).toEqual(['per_token_repeated']);
    // 4 repeats of 8 tokens: lists of 7, 15, 23 and 31 gaps.
    expect(report['per_token']!.latency['count']).toBe(7 + 15 + 23 + 31);
    const last = report['per_token']!.latency.values.slice(-31);
    const within = last.filter((_, i) => ![7, 15, 23].includes(i));
    const mean = within.reduce((sum, value) => sum + value, 0) / 28;
    expect(results.value('optimum.per_token_latency', 'mean', 'recomputed', 5)).toBeCloseTo(mean * 1000, 6);
    // Independent of that list: the decode time, which includes the end of generate() after the last token.
    const decode = results.value('optimum.decode_latency', 'mean', 'file', 4) / 7;
    expect(mean * 1000).toBeLessThan(decode);
    expect((mean * 1000) / decode).toBeGreaterThan(0.99);
    // Its own mean includes the prefills.
    expect(results.value('optimum.per_token_latency', 'mean', 'file', 5)).toBeGreaterThan(1.05 * decode);
  });

  test('benchmark.json has the same report, with the environment', async () => {
    const [withEnvironment, reportOnly] = [
      await loadResults(fixturePath('benchmark.json')),
      await loadResults(fixturePath('benchmark_report.json')),
    ];
    expect(withEnvironment.metrics).toEqual(reportOnly.metrics);
    expect(withEnvironment.facts).toMatchObject({
      tool: { name: 'optimum-benchmark', version: '0.6.0' },
      hardware: { cpu_model: 'AMD EPYC', gpu_name: null },
      software: {
        torch: '2.11.0',
        transformers: '4.57.6',
        benchmark_backend: 'pytorch',
        benchmark_model: 'model',
      },
    });
  });
});
