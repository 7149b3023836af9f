import { expect, test } from 'vitest';
import { memoryCompareDocumentSchema } from '../../model/documents/memory-compare.js';
import { InferscopeError } from '../../model/errors.js';
import { compareMemory, type ComparedSide } from './compare.js';
import { readComparedProfile } from './read-profile.js';

/** A profile of another tool: names of schema 2.0, without bytes, units and component list. */
const foreign = {
  profiler_version: '2.0',
  schema_version: '2.0',
  metadata: { timestamp: '2026-01-01T00:00:00Z', config: { batch_size: 1, dtype: 'float16' } },
  model_info: { name: 'llama-2-7b', num_parameters: 6_738_415_616, num_layers: 32, dtype: 'float16' },
  memory_measurements: {
    baseline: { total_gb: 0.5 },
    post_warmup: { total_gb: 14.5 },
    peak: { total_gb: 16, per_gpu_details: [{ used_gb: 9 }, { used_gb: 7 }] },
    memory_increase_gb: 15.5,
  },
  memory_breakdown: {
    total_measured_gb: 15.5,
    model_weights_gb: 13.5,
    kv_cache_gb: 0.5,
    activations_gb: 0.25,
    framework_overhead_gb: 1.25,
    confidence_levels: { overall: 'medium', weights: 'high', kv_cache: 'low', activations: 'low' },
  },
  latency_stats: { mean_latency_ms: 2000, tokens_per_second: 64 },
  engine_metadata: { engine_version: '0.6.3', engine_type: 'vllm' },
};

/** The same with eight sequences: the KV cache is eight times as large, as in inferscope's profiles. */
const ours = {
  ...foreign,
  units: { gb: '10^9 bytes' },
  metadata: {
    timestamp: '2026-01-02T00:00:00Z',
    status: 'partial',
    config: { batch_size: 8, dtype: 'float16' },
    issues: [{ code: 'other_processes', text: 'Another program used 1 GB.' }],
  },
  memory_measurements: {
    baseline: { total_gb: 0.5, total_bytes: 500_000_000 },
    post_warmup: null,
    peak: {
      total_gb: 20,
      total_bytes: 20_000_000_000,
      per_gpu_details: [
        { gpu: 0, name: 'H200', used_bytes: 9_500_000_000 },
        { gpu: 1, name: 'H200', used_bytes: 10_500_000_000 },
      ],
    },
  },
  memory_breakdown: {
    total_measured_gb: 19.5,
    total_measured_bytes: 19_500_000_000,
    residual_bytes: -250_000_000,
    components: [
      { component: 'model_weights', bytes: 13_500_000_000, confidence: 'high' },
      { component: 'kv_cache', bytes: 4_000_000_000, confidence: 'high' },
      { component: 'activations', bytes: 1_000_000_000, confidence: 'medium' },
      { component: 'cuda_graphs', bytes: 1_250_000_000, confidence: 'low' },
      { component: 'residual', bytes: -250_000_000, confidence: 'low' },
    ],
  },
  latency_stats: { mean_latency_ms: 2500, tokens_per_second: 409.6, mean_ttft_ms: 100 },
};

const side = (label: string, raw: unknown): ComparedSide => ({
  selector: label,
  kind: 'file',
  label,
  ...readComparedProfile(JSON.stringify(raw), label),
});

test('differences in GB and percent, by point, component and GPU, counted by hand', () => {
  const found = compareMemory(side('a.json', foreign), side('b.json', ours));
  memoryCompareDocumentSchema.parse(found);
  const { data } = found;
  const rows = (
    entries: readonly { name: string; change_gb: number | null; change_share: number | null }[],
  ) => entries.map(({ name, change_gb, change_share }) => [name, change_gb, change_share]);
  expect(rows(data.points)).toEqual([
    ['baseline', 0, 0],
    ['post_warmup', null, null],
    ['peak', 4, 0.25],
    ['memory_increase', 4, 4 / 15.5],
    ['warmup_increase', null, null],
    ['growth', null, null],
  ]);
  expect(data.points[1]!.missing).toBe('the second profile does not have it');
  expect(rows(data.components)).toEqual([
    ['model_weights', 0, 0],
    ['kv_cache', 3.5, 7],
    ['activations', 0.75, 3],
    ['framework_overhead', null, null],
    ['cuda_graphs', null, null],
    ['residual', null, null],
    ['total', 4, 4 / 15.5],
  ]);
  const cache = data.components.find(({ name }) => name === 'kv_cache')!;
  expect(cache).toMatchObject({ base_confidence: 'low', now_confidence: 'high', share_of_change: 3.5 / 4 });
  expect(data.components.find(({ name }) => name === 'residual')!.now_gb).toBe(-0.25);
  expect(rows(data.gpus)).toEqual([
    ['GPU 0', 0.5, 0.5 / 9],
    ['GPU 1', 3.5, 0.5],
  ]);
  expect(data.latency).toEqual([
    { name: 'mean_latency', unit: 'ms', base: 2000, now: 2500, change_share: 0.25 },
    { name: 'mean_ttft', unit: 'ms', base: null, now: 100, change_share: null },
    { name: 'tokens_per_second', unit: 'tok/s', base: 64, now: 409.6, change_share: 5.4 },
  ]);
  expect(data.differences).toEqual([
    { label: 'batch size', base: '1', now: '8' },
    { label: 'GPU', base: null, now: 'H200' },
  ]);
  expect(data.headlines).toEqual([
    'The peak is 4.00 GB (25 %) higher: 16.00 GB → 20.00 GB.',
    'Largest changes: KV cache +3.50 GB, activations +750 MB.',
  ]);
});

test('reports what limits the comparison with each side', () => {
  const { data, issues } = compareMemory(side('a.json', foreign), side('b.json', ours));
  expect(issues.map(({ code }) => code)).toEqual([
    'units_unknown',
    'fields_missing',
    'partial_profile',
    'fields_missing',
    'other_processes',
  ]);
  expect(issues.at(-1)!.text).toBe('Another program used 1 GB (b.json).');
  // The same issue of both sides is stated once, with both names.
  const both = compareMemory(side('mm1', ours), side('mm2', ours)).issues.filter(({ text }) =>
    text.startsWith('Another program'),
  );
  expect(both.map(({ text }) => text)).toEqual(['Another program used 1 GB (mm1, mm2).']);
  expect(data.base.absent).toContain('units');
  expect(data.base.absent).not.toContain('memory_breakdown.model_weights_gb');
  expect(data.now.status).toBe('partial');
});

test.each([
  ['[]', /it has no schema_version/],
  ['{', /it is not JSON/],
  [`{"schema_version": ${'['.repeat(100_000)}${']'.repeat(100_000)}}`, /256 levels/],
  ['{"schema_version": "1.0"}', /its schema_version is "1\.0", not 2\.0/],
  ['{"schema_version": "2.0"}', /model_info is missing/],
  [
    '{"schema_version": "2.0", "model_info": {"name": "x"}, "memory_measurements": {}}',
    /memory_measurements\.peak is missing/,
  ],
  [
    '{"schema_version": "2.0", "model_info": {"name": "x"}, "memory_measurements": {"peak": {"total_gb": "16"}}}',
    /memory_measurements\.peak\.total_gb is "16"/,
  ],
  [
    '{"schema_version": "2.0", "model_info": {"name": "x"}, "memory_measurements": {"peak": {"total_gb": -16}}}',
    /memory_measurements\.peak\.total_gb is -16/,
  ],
])('rejects %.80s with the wrong field', (text, message) => {
  expect(() => readComparedProfile(text, 'x.json')).toThrow(InferscopeError);
  expect(() => readComparedProfile(text, 'x.json')).toThrow(message);
});

test('compares a profile that has only the peak', () => {
  const peak = {
    schema_version: '2.0',
    model_info: { name: 'x' },
    memory_measurements: { peak: { total_gb: 1 } },
  };
  const { data } = compareMemory(
    side('a.json', peak),
    side('b.json', { ...peak, units: { gb: '10^9 bytes' } }),
  );
  expect(data.points.map(({ name }) => name)).toEqual(['peak']);
  expect([data.components, data.gpus, data.latency, data.differences]).toEqual([[], [], [], []]);
  expect(data.headlines).toEqual(['The peak is the same: 1.000 GB.']);
});
