import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { loadResults } from './test-load.js';

/** Files that llama-bench of llama.cpp 0.7.0 (build 11669) wrote; json and md are of one run, jsonl and csv of another. */
const fixturePath = (kind: string) => join('test/fixtures/benchmark-results-recorded', `llama-bench.${kind}`);
const folder = mkdtempSync(join(tmpdir(), 'inferscope-llama-bench-'));
afterAll(() => rmSync(folder, { recursive: true }));
const labels = ['pp32', 'tg8', 'pp32+tg8', 'pp32 @ d16', 'tg8 @ d16', 'pp32+tg8 @ d16'];
const names = ['prompt_processing', 'text_generation', 'prompt_and_generation'].map(
  (name) => `llama_bench.${name}`,
);
const labelsOf = ({ metrics }: Awaited<ReturnType<typeof loadResults>>) => [
  ...new Set(metrics.map(({ label }) => label)),
];

describe('llama-bench of llama.cpp 0.7.0', () => {
  test('json: its rates equal those of its repeats', async () => {
    const results = await loadResults(fixturePath('json'));
    expect([results.importer, results.facts.tool.version]).toEqual(['llama-bench', 'Debian (11669)']);
    expect(labelsOf(results)).toEqual(labels);
    for (const [point] of labels.entries()) {
      const name = names[point % 3]!;
      const tokens = [32, 8, 40][point % 3]!;
      const rows = results.iterations.slice(3 * point, 3 * point + 3);
      const rates = rows.map(({ start_ns, end_ns }) => tokens / ((end_ns! - start_ns!) / 1e9));
      const mean = rates.reduce((sum, rate) => sum + rate, 0) / 3;
      const sd = Math.sqrt(rates.reduce((sum, rate) => sum + (rate - mean) ** 2, 0) / 2);
      expect(results.value(name, 'mean', 'file', point) / mean).toBeCloseTo(1, 6);
      expect(results.value(name, 'sd', 'file', point) / sd).toBeCloseTo(1, 5);
    }
  });

  test('md, its default output, has the same figures to two digits', async () => {
    const [json, md] = [await loadResults(fixturePath('json')), await loadResults(fixturePath('md'))];
    expect(md.importer).toBe('llama-bench');
    expect(labelsOf(md)).toEqual(labels);
    for (const [point] of labels.entries())
      for (const statistic of ['mean', 'sd'])
        expect(md.value(names[point % 3]!, statistic, 'file', point)).toBeCloseTo(
          json.value(names[point % 3]!, statistic, 'file', point),
          2,
        );
    expect(md.facts.software).toMatchObject({ benchmark_backend: 'CPU', benchmark_threads: 2 });
    expect(md.facts.tool.version).toBe('Debian (11669)');
    expect(md.iterations).toEqual([]);
    expect(md.issues.map(({ code }) => code)).toEqual(['repeats_unknown']);
  });

  test('csv equals jsonl, without the repeats', async () => {
    const [jsonl, csv] = [await loadResults(fixturePath('jsonl')), await loadResults(fixturePath('csv'))];
    expect(labelsOf(csv)).toEqual(labels);
    expect(jsonl.iterations).toHaveLength(18);
    const figures = (results: typeof csv) =>
      results.metrics.map(({ name, statistic, value }) => [name, statistic, value]);
    expect(figures(csv)).toEqual(figures(jsonl));
    expect(csv.facts).toEqual({ ...jsonl.facts });
  });

  test('a table truncated in the middle of a line is an error', async () => {
    for (const kind of ['md', 'csv']) {
      const lines = readFileSync(fixturePath(kind), 'utf8').split('\n');
      const path = join(folder, `cut.${kind}`);
      writeFileSync(path, [...lines.slice(0, 3), lines[3]!.slice(0, 40)].join('\n'));
      await expect(loadResults(path)).rejects.toMatchObject({ code: 'E_TRACE_FILE' });
    }
  });
});
