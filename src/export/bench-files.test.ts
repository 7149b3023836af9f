import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance, type DuckDBConnection } from '@duckdb/node-api';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { baselineColumns, baselineMetricsSchema } from '../model/documents/baseline-metrics.js';
import { benchDocumentSchema, type BenchSpread } from '../model/documents/bench.js';
import { jsonSchema } from '../model/published.js';
import { testBench } from '../views/test-bench.js';
import { benchFiles } from './bench-files.js';

const folder = mkdtempSync(join(tmpdir(), 'inferscope-bench-files-'));
let connection: DuckDBConnection;

beforeAll(async () => {
  connection = await (await DuckDBInstance.create(':memory:')).connect();
});
afterAll(() => {
  connection.closeSync();
  rmSync(folder, { recursive: true, force: true });
});

/** Rows of a CSV read by DuckDB, an independent reader. */
async function read(text: string): Promise<Record<string, unknown>[]> {
  const path = join(folder, 'read.csv');
  writeFileSync(path, text);
  const reader = await connection.runAndReadAll(
    `SELECT * FROM read_csv('${path}', header = true, strict_mode = true, sample_size = -1)`,
  );
  return reader.getRowObjects();
}

const bench = testBench();
const files = new Map(benchFiles(bench).map(({ name, text }) => [name, text]));
const textOf = (name: string): string => files.get(name) ?? '';

describe('files of a benchmark', () => {
  it('has a valid source document', () => {
    expect(benchDocumentSchema.safeParse(bench).error).toBeUndefined();
  });

  it('writes a CSV only for measured parts', () => {
    expect([...files.keys()]).toEqual([
      'baseline_metrics.json',
      'latency_results.csv',
      'throughput_results.csv',
      'sequence_length_results.csv',
    ]);
    const latencyOnly = testBench();
    latencyOnly.data.parts = ['latency'];
    expect(benchFiles(latencyOnly).map(({ name }) => name)).toEqual([
      'baseline_metrics.json',
      'latency_results.csv',
    ]);
  });

  it("throughput: one row per point and variant, with the document's numbers", async () => {
    const rows = await read(textOf('throughput_results.csv'));
    expect(rows).toHaveLength(10);
    const [first] = rows;
    const spread = bench.data.variants[0]!.points[0]!.latency.tpot_ms as BenchSpread;
    expect(first).toMatchObject({
      engine: 'transformers',
      device: 'NVIDIA H200',
      variant: 'mode=cudagraph',
      outcome: 'measured',
      tpot_ms_mean: spread.mean,
      tpot_ms_ci95_low: spread.ci95![0],
      tpot_ms_p99: spread.p99,
      interleaved: true,
    });
    expect(first!['kv_cache_usage']).toBeNull();
    expect(Number(first!['n'])).toBe(15);
    expect(Number(first!['launches'])).toBe(3);
  });

  it('throughput: scaling is relative to the smallest batch of the same variant', async () => {
    const rows = await read(textOf('throughput_results.csv'));
    for (const variant of ['mode=cudagraph', 'mode=eager']) {
      const variantRows = rows.filter((row) => row['variant'] === variant);
      const rate = (batch: number): number =>
        variantRows.find((row) => Number(row['batch_size']) === batch)!['output_tokens_per_s'] as number;
      expect(variantRows[0]).toMatchObject({ scaling_factor: 1, scaling_efficiency: 1 });
      const sixteen = variantRows.find((row) => Number(row['batch_size']) === 16)!;
      expect(sixteen['scaling_factor']).toBeCloseTo(rate(16) / rate(1), 12);
      expect(sixteen['scaling_efficiency']).toBeCloseTo(rate(16) / rate(1) / 16, 12);
    }
  });

  it('a batch that did not fit is a row with its outcome and empty cells', async () => {
    const row = (await read(textOf('throughput_results.csv'))).at(-1)!;
    expect(row).toMatchObject({
      batch_size: 32n,
      outcome: 'out_of_memory',
      outcome_text: 'CUDA out of memory. Tried to allocate 2.00 GiB',
      tpot_ms_mean: null,
      output_tokens_per_s: null,
      scaling_factor: null,
      flags: null,
    });
  });

  it('a text with comma, quotes and a line break is read back unchanged', async () => {
    const changed = testBench();
    changed.data.engine.model = 'a "b",\nc';
    const latency = benchFiles(changed).find(({ name }) => name === 'latency_results.csv')!;
    expect((await read(latency.text))[0]).toMatchObject({ model: 'a "b",\nc' });
  });

  it('latency and sequence have no scaling columns', async () => {
    for (const name of ['latency_results.csv', 'sequence_length_results.csv']) {
      expect(Object.keys((await read(textOf(name)))[0]!)).not.toContain('scaling_factor');
    }
  });

  it('the JSON is valid, has every column, and a reason for each null', () => {
    const metrics = baselineMetricsSchema.parse(JSON.parse(textOf('baseline_metrics.json')));
    expect(metrics.points).toHaveLength(22);
    for (const row of metrics.points) {
      for (const name of Object.keys(baselineColumns) as (keyof typeof baselineColumns)[]) {
        expect(Number.isFinite(row[name]) !== name in row.missing, `${row.point} ${name}`).toBe(true);
      }
    }
    expect(metrics.points[0]!.missing).toMatchObject({
      kv_cache_usage: 'the engine does not say how full its KV cache is',
    });
    expect(metrics.points[0]!.decode_bound).toBe('memory');
  });

  it('the published schema describes each column', () => {
    const text = jsonSchema('baseline-metrics');
    for (const meaning of Object.values(baselineColumns)) expect(text).toContain(JSON.stringify(meaning));
  });
});
