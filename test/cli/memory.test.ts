import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import * as jq from 'jq-wasm';
import process from 'node:process';
import { beforeAll, expect, test } from 'vitest';
import { tinyConfig } from '../../src/facts/test-session.js';
import { memoryProfileSchema, type MemoryProfile } from '../../src/model/documents/memory-profile.js';
import { packageRoot } from '../../src/model/installation.js';
import {
  expectFailure,
  inferscope,
  createSetup,
  listSessions,
  startCli,
  waitForRecord,
  type TestSetup,
  widestLine,
} from './run-cli.js';

const shape = ['--input-len', '8', '--output-len', '4', '--batch-size', '2', '--threads', '1'];
const setup = createSetup();
let text: string;
let profile: MemoryProfile;
let stdout: string;

const profilesFolder = ({ scratch }: TestSetup) => join(scratch, 'results', 'memory-profiles');
const readProfile = (path: string) => memoryProfileSchema.parse(JSON.parse(readFileSync(path, 'utf8')));
const run = (...more: string[]) =>
  inferscope(setup, ['memory', '--engine', 'onnx', '--model', setup.tiny, ...shape, '--runs', '2', ...more]);

beforeAll(() => {
  const result = run('--name', 'first');
  expect([result.status, result.stderr.match(/error.*/)?.[0]]).toEqual([0, undefined]);
  stdout = result.stdout;
  const [file, ...otherFiles] = readdirSync(profilesFolder(setup));
  expect(otherFiles).toEqual([]);
  expect(file).toMatch(/^tiny-profile_\d{8}-\d{6}\.json$/);
  text = readFileSync(join(profilesFolder(setup), file!), 'utf8');
  profile = memoryProfileSchema.parse(JSON.parse(text));
});

test('the profile has the names of schema 2.0, and the requested values', () => {
  expect(profile).toMatchObject({
    profiler_version: '2.0',
    schema_version: '2.0',
    units: { gb: '10^9 bytes' },
  });
  const { metadata, model_info, engine_metadata } = profile;
  // Defaults of an embedded run: TP 1, 0.9, the rest unset. The embedded engine converts its default dtype float16 to float32, and the
  // dtype that ran is reported.
  expect(metadata.config).toEqual({
    model: setup.tiny,
    input_len: 8,
    output_len: 4,
    batch_size: 2,
    dtype: 'float32',
    quantization: null,
    kv_cache_dtype: null,
    tensor_parallel_size: 1,
    gpu_memory_utilization: 0.9,
    max_model_len: null,
  });
  expect(metadata).toMatchObject({ where: 'host', status: 'measured', container_name: null });
  expect(metadata.session_id).toBe(listSessions(setup)[0]!.id);
  // tinyConfig: 2 layers, 4 heads of 16, 2 KV heads, 131392 parameters; the embedded engine computes in float32.
  expect(model_info).toMatchObject({
    name: 'tiny',
    num_parameters: 131_392,
    num_layers: 2,
    num_heads: 4,
    num_kv_heads: 2,
    head_dim: 16,
    hidden_size: 64,
    dtype: 'float32',
    dtypes: { weights: 'float32', activations: 'float32', kv_cache: 'float32' },
    sources: { num_kv_heads: 'config' },
  });
  expect(engine_metadata.engine_type).toBe('onnx');
  expect(engine_metadata.engine_version).toMatch(/^\d+\.\d+/);
});

test('the points are in order, and components with the residual sum to the measured total', () => {
  const { baseline, post_warmup, peak, memory_increase_bytes, growth_bytes, warmup_increase_bytes } =
    profile.memory_measurements;
  expect(baseline.total_bytes).toBeGreaterThan(20e6);
  expect(post_warmup.total_bytes).toBeGreaterThan(baseline.total_bytes!);
  expect(peak.total_bytes).toBeGreaterThanOrEqual(post_warmup.total_bytes!);
  expect(warmup_increase_bytes! + growth_bytes!).toBe(memory_increase_bytes);
  expect(peak.max_gb).toBe(peak.total_gb);
  expect(peak.stddev_gb).toBe(0);
  const { components, total_measured_bytes, model_weights_gb, kv_cache_gb, confidence_levels } =
    profile.memory_breakdown;
  expect(components.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(total_measured_bytes);
  expect(total_measured_bytes).toBe(peak.total_bytes);
  expect(model_weights_gb).toBe((131_392 * 4) / 1e9);
  // K and V, 2 layers, 2 KV heads × 16, float32, 12 tokens, 2 sequences.
  expect(kv_cache_gb).toBe((2 * 2 * 2 * 16 * 4 * 12 * 2) / 1e9);
  expect(confidence_levels).toMatchObject({ weights: 'high', kv_cache: 'medium', activations: 'low' });
  const residual = components.find(({ component }) => component === 'residual')!;
  expect(residual.confidence).not.toBe('high');
  for (const { evidence } of components) expect(evidence[0]!.length).toBeGreaterThan(10);
});

test('latency is measured in the same run', () => {
  const { mean_latency_ms, tokens_per_second, mean_ttft_ms, runs } = profile.latency_stats;
  expect(runs).toBe(2);
  expect(tokens_per_second).toBeCloseTo((2 * 4) / (mean_latency_ms! / 1000), 6);
  expect(mean_ttft_ms).toBeLessThan(mean_latency_ms!);
});

test('the file matches the published JSON Schema, and a changed one does not', () => {
  const schema = JSON.parse(inferscope(setup, ['schema', 'memory-profile']).stdout) as object;
  const validate = new Ajv2020({ strict: false }).compile(schema);
  expect([validate(JSON.parse(text)), validate.errors]).toEqual([true, null]);
  const wrong = JSON.parse(text) as MemoryProfile;
  delete (wrong.memory_breakdown as Partial<MemoryProfile['memory_breakdown']>).total_measured_gb;
  expect(validate(wrong)).toBe(false);
});

test.each([
  ['.profiler_version, .schema_version', ['2.0', '2.0']],
  ['.model_info.name', ['tiny']],
  ['.model_info | .num_parameters, .num_layers, .dtype', [131_392, 2, 'float32']],
  ['.model_info.dtypes | .weights, .activations, .kv_cache', ['float32', 'float32', 'float32']],
  ['.memory_measurements.peak.per_gpu_details | length', [0]],
  ['.memory_measurements.baseline.total_gb < .memory_measurements.peak.total_gb', [true]],
  ['.memory_measurements | .post_warmup.total_gb <= .peak.total_gb and .memory_increase_gb > 0', [true]],
  [
    '.memory_breakdown | (.model_weights_gb + .kv_cache_gb + .activations_gb + .framework_overhead_gb + .residual_gb - .total_measured_gb) | fabs < 1e-9',
    [true],
  ],
  [
    '.memory_breakdown.confidence_levels | .overall, .weights, .kv_cache, .activations | type',
    ['string', 'string', 'string', 'string'],
  ],
  ['.latency_stats | (.mean_latency_ms > 0), (.tokens_per_second > 0)', [true, true]],
  ['.engine_metadata | .engine_type, (.engine_version | type)', ['onnx', 'string']],
  ['.memory.total_gb == .memory_breakdown.total_measured_gb, (.memory.total_gb > 0)', [true, true]],
  [
    '.memory_breakdown | {weights, kv_cache, activations, overhead, confidence} == {weights: .model_weights_gb, kv_cache: .kv_cache_gb, activations: .activations_gb, overhead: .framework_overhead_gb, confidence: .confidence_levels.overall}',
    [true],
  ],
  ['.memory_breakdown | {weights, kv_cache, activations, overhead, confidence} | length', [5]],
  ['.metadata.status, .units.gb', ['measured', '10^9 bytes']],
])('jq: %s', async (filter, wanted) => {
  const printed = await jq.raw(text, filter, ['-c']);
  const lines = printed.trim().split('\n');
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(wanted);
});

test('the terminal output fits 80 columns', () => {
  expect(widestLine(stdout)).toBeLessThanOrEqual(80);
  // A warning about a busy machine may replace the last table of the summary, which is limited to 30 lines; the report has this table.
  const report = inferscope(setup, ['report', '--session', 'first', '--format', 'text']).stdout;
  for (const words of ['baseline', 'after warm-up']) expect(report).toContain(words);
  for (const words of ['peak', 'weights', 'KV cache', 'residual', 'latency']) expect(stdout).toContain(words);
});

test('report prints the same profile later', () => {
  const { status, stdout: shown } = inferscope(setup, ['report', '--session', 'first', '--json']);
  expect(status).toBe(0);
  const { schema, data } = JSON.parse(shown) as { schema: string; data: { profile: unknown } };
  expect(schema).toBe('inferscope/memory/1.0');
  expect(data.profile).toEqual(JSON.parse(text));
});

test('the file of a profile imports as a session, also without raw files, and other commands read it', () => {
  const path = join(setup.scratch, 'elsewhere.json');
  const h200 = join(packageRoot(), 'test/fixtures/memory-profiles-h200/llama-2-7b-float16.json');
  writeFileSync(path, text);
  const imported = inferscope(setup, ['import', path, '--name', 'imported', '--no-raw', '--json', '--quiet']);
  expect([imported.status, imported.stderr]).toEqual([0, '']);
  const document = JSON.parse(imported.stdout) as { schema: string; data: { profile: unknown } };
  expect(document.schema).toBe('inferscope/memory/1.0');
  expect(document.data.profile).toEqual(profile);
  expect(inferscope(setup, ['report', '--session', 'imported']).status).toBe(0);
  expect(inferscope(setup, ['explain', '--session', 'imported', '--json']).status).toBe(0);
  const validated = inferscope(setup, ['validate', 'imported', '--json']);
  const { counts } = (JSON.parse(validated.stdout) as { data: { counts: object } }).data;
  expect(counts).toMatchObject({ compared: 1, rejected: 0, skipped: 0 });
  // Both are the same run, so there is nothing to compare.
  const same = inferscope(setup, ['memory', 'compare', 'first', 'imported', '--json']);
  expect(expectFailure(same, 2, 'E_USAGE').what).toContain('the same profile');
  expect(inferscope(setup, ['import', path, h200, '--json', '--quiet']).status).toBe(2);
});

test('dimensions given as flags override config.json, and a disagreement is a warning', () => {
  const path = join(setup.scratch, 'given.json');
  const result = run('--num-kv-heads', '4', '--model-params', '131k', '--output', path, '--json', '--quiet');
  expect(result.status).toBe(0);
  expect(JSON.parse(result.stdout)).toEqual(readProfile(path));
  const { model_info, metadata, memory_breakdown } = readProfile(path);
  expect(model_info).toMatchObject({ num_kv_heads: 4, num_parameters: 131_000 });
  expect(model_info.sources).toMatchObject({ num_kv_heads: 'flag', num_parameters: 'flag' });
  expect(
    metadata.issues.filter(({ code }) => code === 'dimension_disagrees').map((issue) => issue.text),
  ).toEqual([
    "--num-kv-heads 4 contradicts the model's config (num_key_value_heads 2): the typed value is used.",
  ]);
  expect(memory_breakdown.kv_cache_gb).toBe((2 * 2 * 4 * 16 * 4 * 12 * 2) / 1e9);
});

test('without a number of KV heads all heads are assumed, with low confidence', () => {
  const config: Partial<typeof tinyConfig> = { ...tinyConfig };
  delete config.num_key_value_heads;
  const model = join(setup.scratch, 'no-kv-heads.json');
  writeFileSync(model, JSON.stringify(config));
  const path = join(setup.scratch, 'no-kv-heads-profile.json');
  const args = ['memory', '--engine', 'onnx', '--model', model, ...shape, '--runs', '1', '--output', path];
  expect(inferscope(setup, [...args, '--quiet']).status).toBe(0);
  const { model_info, memory_breakdown } = readProfile(path);
  expect(model_info).toMatchObject({ num_kv_heads: 4, sources: { num_kv_heads: 'assumed: all heads' } });
  expect(memory_breakdown.confidence_levels.kv_cache).toBe('low');
});

test('a run that times out is a partial profile with an error', async () => {
  const path = join(setup.scratch, 'slow.json');
  const sizes = ['--input-len', '128', '--output-len', '128', '--batch-size', '8', '--threads', '1'];
  const model = ['--engine', 'onnx', '--model', setup.slow];
  const limits = ['--timeout', '1.5', '--output', path, '--quiet'];
  const { status, stderr } = inferscope(setup, ['memory', ...model, ...sizes, ...limits]);
  expect([status, stderr.includes('(E_TIMEOUT)')], stderr).toEqual([4, true]);
  const { metadata, memory_measurements, latency_stats, missing } = readProfile(path);
  expect(metadata.status).toBe('partial');
  expect(memory_measurements.baseline.total_gb).toBeGreaterThan(0);
  expect(memory_measurements.peak.total_gb).toBeGreaterThan(0);
  expect([latency_stats.mean_latency_ms, latency_stats.runs]).toEqual([null, 0]);
  expect(missing['latency_stats']).toContain('did not finish within 1.5 s (--timeout)');
});

test('the data recorded before the engine was killed are a partial profile', async () => {
  const path = join(setup.scratch, 'killed.json');
  const sizes = ['--input-len', '128', '--output-len', '128', '--batch-size', '8', '--threads', '1'];
  const running = startCli(setup, [
    'memory',
    '--engine',
    'onnx',
    '--model',
    setup.slow,
    ...sizes,
    '--output',
    path,
  ]);
  const record = await waitForRecord(setup, 'memory', ({ type }) => type === 'model');
  process.kill(record.pid, 'SIGKILL');
  const { status, stderr } = await running.exit;
  expect([status, stderr.includes('(E_OUT_OF_MEMORY)')], stderr).toEqual([4, true]);
  const { metadata, memory_measurements } = readProfile(path);
  expect(metadata.status).toBe('partial');
  expect(memory_measurements.peak.total_gb).toBeGreaterThan(0);
});

test.each([
  [['--input-len', '8', '--output-len', '4'], '--model is missing'],
  [['--model', 'x', ...shape, '--gpu-memory-utilization', '1.2'], '--gpu-memory-utilization 1.2'],
])('%j is rejected before anything is measured', (args, what) => {
  const result = inferscope(setup, ['memory', ...args, '--json']);
  expect(expectFailure(result, 2, 'E_USAGE').what).toContain(what);
});
