import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { expect, test } from 'vitest';
import { kernelsDocumentSchema } from '../../src/model/documents/kernels.js';
import {
  expectFailure,
  inferscope,
  unfinishedSessions,
  createSetup,
  listSessions,
  widestLine,
} from './run-cli.js';

const setup = createSetup();

const quick = ['--engine', 'onnx', '--threads', '1', '--runs', '5', '--max-seconds', '0.1'];

test('a sweep of two kernels writes a document, a session, files that DuckDB reads, and a report with maps', async () => {
  const sweep = ['--batch-size', '1,2', '--seq-len', '4,8', '--hidden-size', '64'];
  const result = inferscope(setup, [
    'kernels',
    'gemm,rmsnorm',
    ...quick,
    ...sweep,
    '--trace',
    '--name',
    'swept',
    '--json',
  ]);
  expect(result.status, result.stderr).toBe(0);
  const { data, issues } = kernelsDocumentSchema.parse(JSON.parse(result.stdout));
  // Batch 2 of 4 tokens and batch 1 of 8 tokens are the same case of these kernels, but two cells of the map.
  expect(data.cases).toHaveLength(6);
  expect(data.maps.map(({ cells }) => cells.length)).toEqual([4, 4]);
  for (const result of data.cases) {
    expect(result).toMatchObject({ outcome: 'measured', dtype: 'float32', per_sample: 32 });
    expect(result.runs).toBeGreaterThanOrEqual(3);
    expect(result.min_ns!).toBeLessThanOrEqual(result.median_ns!);
    expect(result.median_ns!).toBeLessThanOrEqual(result.max_ns!);
    expect(result.max_error!).toBeLessThan(3e-5);
    // This home has a planted roofline: 100 GFLOP/s and 100 GB/s at the smallest working set.
    expect(result.roof_share.value).toBeGreaterThan(0);
    const operator = result.kernel === 'gemm' ? 'MatMul' : 'SkipSimplifiedLayerNormalization';
    expect(result.executed).toMatchObject([{ what: 'operator', name: operator, count: 1 }]);
    expect(result.executed![0]!.ns).toBeGreaterThan(0);
  }
  expect(data.maps.map(({ series }) => series)).toEqual(['gemm', 'rmsnorm']);
  expect(issues.map(({ code }) => code)).not.toContain('no_roofline');

  const csv = join(setup.scratch, 'results', 'kernel_results.csv');
  const database = await (await DuckDBInstance.create(':memory:')).connect();
  const csvTotals = await database.runAndReadAll(
    `SELECT kernel, count(*)::INT AS n, min(median_ns) > 0 AS timed, sum(flops)::DOUBLE AS flops,
            count(roof_level)::INT AS with_roof
     FROM read_csv('${csv}', header = true) GROUP BY kernel ORDER BY kernel`,
  );
  // gemm: 2·m·64·64 FLOPs for m = 4, 8, 16; rmsnorm: 5·m·64.
  expect(csvTotals.getRowObjects()).toEqual([
    { kernel: 'gemm', n: 3, timed: true, flops: 2 * 28 * 64 * 64, with_roof: 3 },
    { kernel: 'rmsnorm', n: 3, timed: true, flops: 5 * 28 * 64, with_roof: 3 },
  ]);
  const json: unknown = JSON.parse(
    readFileSync(join(setup.scratch, 'results', 'kernel_results.json'), 'utf8'),
  );
  expect(kernelsDocumentSchema.parse(json).data.session.id).toBe(data.session.id);

  const page = join(setup.scratch, 'kernels.html');
  expect(inferscope(setup, ['report', '--session', 'swept', '--output', page]).status).toBe(0);
  const html = readFileSync(page, 'utf8');
  expect(html.match(/data-chart="heat"/g)).toHaveLength(2);
  expect(html).toContain('data-chart="roofline"');
  expect(html).not.toMatch(/(?:src|href)="https?:/);
  const rows = inferscope(setup, [
    'sql',
    'SELECT count(*) AS n FROM microbenchmarks',
    '--session',
    'swept',
    '--format',
    'csv',
  ]);
  expect(rows.stdout).toContain('6');
});

test("a model's operations sum to its steps, and fit 80 columns", () => {
  const result = inferscope(setup, ['kernels', '--from-model', setup.tiny, '--context-len', '8', ...quick]);
  expect(result.status, result.stderr).toBe(0);
  // Two layers: each step has 7 operations outside the layers and 9 in each layer.
  expect(result.stdout).toMatch(/prefill, batch 1, 8 tokens .* 22\/22/);
  expect(result.stdout).toMatch(/^ +attention +2 /m);
  expect(widestLine(result.stdout)).toBeLessThanOrEqual(80);
  expect(result.stderr).toMatch(/kernel_results(-\d+)?\.csv, kernel_results(-\d+)?\.json in results/);
});

test('bad input is reported before anything is measured, with what to type', () => {
  const sessionCount = listSessions(setup).length;
  const fails = (args: string[], code: number, name: string) =>
    expectFailure(inferscope(setup, ['kernels', ...args, '--json']), code, name);
  expect(fails(['atention'], 2, 'E_USAGE').fix).toContain('inferscope kernels attention');
  expect(fails(['gemm', ...quick, '--dtype', 'float8'], 2, 'E_DTYPE').fix).toContain('--engine torch');
  expect(fails(['attention', ...quick, '--backend', 'flash'], 2, 'E_USAGE').fix).toContain('--engine torch');
  expect(fails(['gemm', ...quick, '--hidden-size', '10000000'], 4, 'E_OUT_OF_MEMORY').why).toMatch(
    /needs at least .* TiB; .* GiB (?:is|are) free/,
  );
  expect(
    fails(['gemm', '--engine', 'torch', '--python', '/no/such/python'], 3, 'E_ENGINE_MISSING').fix,
  ).toContain('--python');
  expect(fails(['gemm', '--from-model', setup.tiny], 2, 'E_USAGE').what).toContain(
    '--from-model are mutually exclusive',
  );
  expect(fails(['gemm', '--context-len', '8'], 2, 'E_USAGE').why).toContain('--seq-len');
  expect(fails(['--from-model', 'llama-9'], 5, 'E_MODEL_NOT_FOUND').fix).toContain('--fits');
  writeFileSync(join(setup.scratch, 'file'), '');
  expect(fails(['gemm', '--output', 'file'], 2, 'E_USAGE').why).toContain('folder');
  expect(listSessions(setup)).toHaveLength(sessionCount);
  expect(unfinishedSessions(setup)).toEqual([]);
  expect(existsSync(join(setup.scratch, 'file', 'kernel_results.csv'))).toBe(false);
});

test('a case that does not fit is reported together with the measured ones', () => {
  const args = ['kernels', 'softmax', ...quick, '--seq-len', '4,2000000000', '--hidden-size', '64', '--json'];
  const { status, stdout } = inferscope(setup, args);
  expect(status).toBe(0);
  const { cases } = kernelsDocumentSchema.parse(JSON.parse(stdout)).data;
  expect(cases.map(({ outcome }) => outcome).toSorted()).toEqual(['measured', 'out_of_memory']);
  expect(cases.find(({ outcome }) => outcome === 'out_of_memory')!.text).toMatch(/free on cpu/);
});
