import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { profileFieldsSchema, type ProfileFields } from '../facts/validate/profile-fields.js';
import { toleranceOf, validateProfiles } from '../facts/validate/validate.js';
import { validateCsv } from '../export/validate-csv.js';
import { document } from '../model/document.js';
import { validationDocumentSchema, validationHistoryDocumentSchema } from '../model/documents/validate.js';
import { InferscopeError } from '../model/errors.js';
import type { Validation } from '../model/documents/validate.js';
import { pageOfView } from '../render/html/view.js';
import { terminalView } from '../render/terminal/view.js';
import { testFolder } from '../session/test-folder.js';
import { validateHistoryView } from '../views/validate-history.js';
import { validateView } from '../views/validate.js';
import { validate, validationHistory, writeTexts } from './validate-run.js';

const folder = join('test', 'fixtures', 'memory-profiles-h200');
const read = (name: string): ProfileFields =>
  profileFieldsSchema.parse(JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8')));
/** With details, without line breaks. */
const textOf = (data: Omit<Validation, 'session'>): string =>
  terminalView(validateView(document('validate', '1.1', { session: null, ...data })), {
    width: 80,
    level: 2,
  }).replaceAll(/\s+/g, ' ');
const names = [
  'qwen2.5-0.5b-float16',
  'qwen2-1.5b-float32',
  'llama-2-7b-float16',
  'llama-3.1-8b-bfloat16',
  'qwen1.5-moe-a2.7b-bfloat16',
  'qwen2.5-14b-bfloat16',
];
const held = (profile: ProfileFields, tolerance = 0.05) =>
  validateProfiles([{ source: 'x.json', profile }], toleranceOf(tolerance));

describe('an H200, six shapes from 0.5 B to 14 B, MHA, GQA and MoE, in three dtypes', () => {
  const found = validateProfiles(
    names.map((name) => ({ source: name, profile: read(name) })),
    toleranceOf(0.05),
  );

  it.each(names)('%s: total within 5 %, each component within 10 % or 64 MiB', (name) => {
    const row = found.profiles.find(({ source }) => source === name)!;
    expect(row.status).toBe('compared');
    expect(Math.abs(row.total!.error_share!)).toBeLessThan(0.05);
    expect(row.components.length).toBeGreaterThanOrEqual(6);
    for (const { component, error_bytes, measured_bytes } of row.components) {
      const most = Math.max(0.1 * measured_bytes, 64 * 2 ** 20);
      expect(Math.abs(error_bytes), component).toBeLessThanOrEqual(most);
    }
  });

  it('sums up by component, family, dtype and tensor parallelism, and has nothing to recommend', () => {
    expect(found.result).toBe('passed');
    expect(found.counts).toEqual({ compared: 6, rejected: 0, skipped: 0, within: 6 });
    const weights = found.components.find(({ component }) => component === 'model_weights')!;
    expect(weights).toMatchObject({ profiles: 6, worst_share: 0, within: 6 });
    const values = found.groups.map(({ by, value, profiles }) => `${by} ${value}: ${profiles}`);
    expect(values).toContain('family Qwen2: 3');
    expect(values).toContain('dtype bfloat16: 3');
    expect(values).toContain('tensor_parallel_size 1: 6');
    expect(found.recommendations).toEqual([]);
    expect(found.total_by_fit).toMatchObject({ fitted: { profiles: 6 }, others: { profiles: 0 } });
  });
});

it.each([
  'gpt2-xl-float16',
  'opt-6.7b-float16',
  'phi-2-float16',
  'gemma-2-9b-bfloat16',
  'gemma-3-4b-bfloat16',
  'mistral-7b-float16-eager',
  'llama-3.2-1b-bfloat16',
  'deepseek-v2-lite-bfloat16',
])(
  'held-out/%s, which no constant was fitted to (except context growth of llama-3.2-1b): total within 0.2 %, every component within 64 MiB',
  (name) => {
    const [row] = held(read(`held-out/${name}`)).profiles;
    expect(Math.abs(row!.total!.error_share!)).toBeLessThan(0.002);
    const errors = new Map(row!.components.map((one) => [one.component, one.error_bytes]));
    expect([errors.get('model_weights'), errors.get('kv_cache')]).toEqual([0, 0]);
    // Tensors of a few KiB are omitted from the allocation order that determines activations and reserve.
    expect(Math.abs(errors.get('activations')!)).toBeLessThan(3e6);
    expect(Math.abs(errors.get('allocator_reserve')!)).toBeLessThan(20 * 2 ** 20);
    // float32 or not, 16 tokens or 512: the memory of attention is computed.
    expect(Math.abs(errors.get('cuda_context')!)).toBeLessThan(2 ** 20);
    for (const bytes of errors.values()) expect(Math.abs(bytes)).toBeLessThan(64 * 2 ** 20);
  },
);

it('reports errors of runs that constants were fitted to apart from the others', () => {
  const runs = ['llama-2-7b-float16', 'held-out/phi-2-float16', 'held-out/gemma-3-4b-bfloat16'];
  const found = validateProfiles(
    runs.map((source) => ({ source, profile: read(source) })),
    toleranceOf(0.05),
  );
  expect(found.profiles.filter(({ fitted }) => fitted).map(({ model }) => model)).toEqual(['llama-2-7b']);
  expect(found.total_by_fit).toMatchObject({ fitted: { profiles: 1 }, others: { profiles: 2 } });
  expect(held(read('held-out/phi-2-float16')).total_by_fit).toBeNull();
});

it('held-out/qwen3-4b-bfloat16-graph: a captured decode step, not used for fitting', () => {
  const [row] = held(read('held-out/qwen3-4b-bfloat16-graph')).profiles;
  const graphs = row!.components.find(({ component }) => component === 'cuda_graphs')!;
  // 32 MiB of cuBLAS, 2 × 36 MiB of repeated keys and values, one segment of small tensors.
  expect(graphs).toMatchObject({ estimated_bytes: 106 * 2 ** 20, error_bytes: 0 });
  expect(Math.abs(row!.total!.error_share!)).toBeLessThan(0.015);
});

it.each(['two-gpus/llama-3.1-8b-bfloat16', 'two-gpus/qwen2.5-14b-bfloat16'])(
  '%s, divided by tp_plan over two H200s: total within 5 %, weights and cache to the byte',
  (name) => {
    const [row] = held(read(name)).profiles;
    expect(row).toMatchObject({ status: 'compared', tensor_parallel_size: 2 });
    expect(Math.abs(row!.total!.error_share!)).toBeLessThan(0.02);
    const error = (component: string) =>
      row!.components.find((one) => one.component === component)!.error_bytes;
    expect([error('model_weights'), error('kv_cache')]).toEqual([0, 0]);
    expect(Math.abs(error('activations'))).toBeLessThan(2 * 2 ** 20);
    for (const component of ['framework_overhead', 'cuda_context']) {
      expect(Math.abs(error(component)), component).toBeLessThan(64 * 2 ** 20);
    }
    // One of two Llama runs reserved 114 MiB more per GPU than the other: the allocator's segments vary between runs.
    expect(Math.abs(error('allocator_reserve')) / 2).toBeLessThan(128 * 2 ** 20);
  },
);

describe('an inconsistent measurement', () => {
  const change = (edit: (profile: ProfileFields) => void): string => {
    const profile = structuredClone(read('llama-2-7b-float16'));
    edit(profile);
    const [row] = held(profile).profiles;
    expect(row!.status).toBe('rejected');
    return row!.reasons.join(' ');
  };

  it('is rejected with the reason', () => {
    const below = change(({ memory_breakdown: parts }) => {
      parts.total_measured_bytes = 3e9;
      parts.components = null;
      parts.residual_bytes = null;
    });
    expect(below).toContain('below the weights (13.48 GB)');
    const exited = change(({ memory_measurements: points }) => {
      points.peak.total_bytes = 0;
      points.baseline!.total_bytes = 0;
    });
    expect(exited).toContain('after the process had exited');
    const idle = change((profile) => {
      profile.engine_metadata!.engine_type = 'vllm';
    });
    // 0.9 of 150.75 GB, and 16.4 GB were seen.
    expect(idle).toContain('A live vllm fills its share of the GPUs (135.7 GB');
    const units = change(({ memory_measurements: { peak } }) => {
      peak.per_gpu_details![0]!.used_bytes = 200e9;
    });
    expect(units).toContain('units are wrong');
    const sum = change(({ memory_breakdown: parts }) => {
      parts.components![0]!.bytes += 1e9;
    });
    expect(sum).toContain('sum to');
    const others = change(({ metadata }) => {
      metadata!.issues = [{ code: 'gpu_shared', text: 'gpu0 was also used by x.' }];
    });
    expect(others).toContain('gpu0 was also used by x.');
    const divided = change((profile) => {
      profile.model_info.tensor_parallel_size = 2;
      profile.memory_breakdown.components![0]!.bytes /= 2;
    });
    expect(divided).toContain('those of one of 2 GPUs');
    expect(change(({ metadata }) => (metadata!.sampling!.samples = 1))).toContain('1 samples');
    expect(held(read('llama-3.1-8b-float32-oom')).profiles[0]!.reasons[0]).toContain('stopped early');
  });

  it('counts where others used the GPU and its own share is known, with a note', () => {
    const path = join('test', 'fixtures', 'memory-another-process-h200', 'before.json');
    const flagged = profileFieldsSchema.parse(JSON.parse(readFileSync(path, 'utf8')));
    flagged.memory_breakdown.total_measured_basis = 'own_processes';
    const found = held(flagged);
    expect(found.profiles[0]).toMatchObject({ status: 'compared', total: { within: true } });
    expect(found.counts).toMatchObject({ compared: 1, rejected: 0 });
    const said = 'x.json: Others used the GPU; the total covers only its own processes';
    expect(textOf(found)).toContain(`note ${said}`);
    expect(validateCsv(found)).toContain('Others used the GPU');
    // The count of the whole GPU includes other processes, so it cannot be compared.
    flagged.memory_breakdown.total_measured_basis = 'points';
    expect(held(flagged).profiles[0]).toMatchObject({ status: 'rejected', total: null });
  });

  it('is rejected if components include memory of other processes', () => {
    const path = join('test', 'fixtures', 'memory-another-process-h200', 'joined.json');
    const [row] = held(profileFieldsSchema.parse(JSON.parse(readFileSync(path, 'utf8')))).profiles;
    expect(row).toMatchObject({ status: 'rejected', total: null });
    expect(row!.reasons.join()).toContain('is more than the total of 2.089 GB');
  });

  it('is rejected where a part is above the total, or weights are twice the possible ones', () => {
    const part = change(({ memory_breakdown: parts }) => {
      const total = parts.total_measured_bytes!;
      parts.components![2]!.bytes = 2 * total;
      parts.residual_bytes =
        total -
        parts.components!.reduce(
          (sum, { component, bytes }) => sum + (component === 'residual' ? 0 : bytes),
          0,
        );
      for (const one of parts.components!) if (one.component === 'residual') one.bytes = parts.residual_bytes;
    });
    expect(part).toContain('is more than the total');
    const weights = change(({ memory_breakdown: parts }) => {
      const own = parts.components!.find(({ component }) => component === 'model_weights')!;
      const added = own.bytes;
      own.bytes *= 2;
      parts.total_measured_bytes! += added;
    });
    expect(weights).toContain('2.00× those of the model');
  });

  it('compares only what was measured: formulas of a CPU profile are listed as not measured', () => {
    const profile = read('llama-2-7b-float16');
    const cache = profile.memory_breakdown.components!.find(({ component }) => component === 'kv_cache')!;
    cache.basis = 'formula';
    const [row] = held(profile).profiles;
    expect(row!.not_measured).toEqual(['kv_cache']);
    expect(row!.components.map(({ component }) => component)).not.toContain('kv_cache');
    expect(textOf(held(profile))).toContain('not measured KV cache in 1');
    const [head, first] = validateCsv(held(profile)).split('\n');
    expect(first!.split(',')).toContain('kv_cache');
    expect(head!.split(',')).toContain('not_measured');
  });

  it('contradictory dimensions lower the confidence and are named', () => {
    const profile = structuredClone(read('llama-2-7b-float16'));
    profile.model_info.num_layers = 40;
    const [row] = held(profile).profiles;
    expect(row!.reasons.join()).toContain('It states 40 layers, its config 32');
    expect(new Set(row!.components.map((one) => one.estimate_confidence))).toEqual(new Set(['low']));
  });

  it('recommends no constant from one model', () => {
    const profile = structuredClone(read('llama-2-7b-float16'));
    const own = profile.memory_breakdown.components!.find(({ component }) => component === 'cuda_context')!;
    own.bytes += 300 * 2 ** 20;
    profile.memory_breakdown.total_measured_bytes! += 300 * 2 ** 20;
    const several = [1, 2, 3, 4].map((n) => ({ source: `${n}.json`, profile }));
    expect(validateProfiles(several, toleranceOf(0.05)).recommendations).toEqual([]);
  });

  it('is skipped for an unknown model', () => {
    const profile = read('llama-2-7b-float16');
    const other = { ...profile, engine_metadata: { engine_type: 'tensorrt-llm' } };
    expect(held(other).profiles[0]).toMatchObject({ status: 'skipped' });
    const unknown = { ...profile, model_info: { ...profile.model_info, name: 'mine', config: null } };
    unknown.metadata!.config!.model = 'mine';
    expect(held(unknown).profiles[0]!.reasons[0]).toContain('mine is not a preset');
    expect(held(unknown).result).toBe('nothing_compared');
    const served = read('llama-2-7b-float16');
    served.metadata!.where = 'url';
    expect(held(served).profiles[0]).toMatchObject({ status: 'skipped' });
    expect(held(served).profiles[0]!.reasons[0]).toContain('a server that was already running');
  });
});

it('a profile of another tool: names and _gb figures alone', () => {
  const [row] = held(
    profileFieldsSchema.parse({
      schema_version: '2.0',
      metadata: { config: { input_len: 512, output_len: 48, batch_size: 4, dtype: 'float16' } },
      model_info: { name: 'meta-llama/Llama-2-7b-hf' },
      memory_measurements: { baseline: { total_gb: 0 }, peak: { total_gb: 16.388 } },
      memory_breakdown: { model_weights_gb: 13.477, kv_cache_gb: 1.3, activations_gb: 0.2 },
      engine_metadata: { engine_type: 'transformers' },
    }),
  ).profiles;
  expect(row!.components.map(({ component, within }) => [component, within])).toEqual([
    ['model_weights', true],
    ['kv_cache', false],
    ['activations', true],
  ]);
  // The GPU is not known: other context and workspace than an H200's.
  expect(Math.abs(row!.total!.error_share!)).toBeLessThan(0.05);
});

it('a wrong constant is named with the value that fits', () => {
  const profiles = names.map((name) => {
    const profile = structuredClone(read(name));
    const context = profile.memory_breakdown.components!.find(
      ({ component }) => component === 'cuda_context',
    )!;
    context.bytes += 300 * 2 ** 20;
    profile.memory_breakdown.total_measured_bytes! += 300 * 2 ** 20;
    return { source: name, profile };
  });
  const { recommendations, components } = validateProfiles(profiles, toleranceOf(0.05));
  expect(recommendations).toHaveLength(1);
  expect(recommendations[0]).toMatchObject({
    constant: 'cudaContext.Hopper',
    profiles: 6,
    models: 6,
    unit: 'bytes',
    current_source: expect.stringContaining('(fitted to 6 runs)') as unknown,
  });
  // 687 MiB in addition to the memory of attention kernels, and 300 more.
  expect(recommendations[0]!.fitted / 2 ** 20).toBeCloseTo(987, 0);
  expect(recommendations[0]!.error_after_bytes).toBeLessThan(8 * 2 ** 20);
  expect(components.find(({ component }) => component === 'cuda_context')!.within).toBe(0);
});

describe('inferscope validate', () => {
  let home: string;
  beforeEach(() => {
    home = testFolder();
    vi.stubEnv('INFERSCOPE_HOME', home);
  });
  afterEach(() => vi.unstubAllEnvs());

  it('a folder gives a session, a summary, a CSV and a page; the trend covers sessions', async () => {
    const made = await validate([folder], { tolerance: 0.05 });
    expect(validationDocumentSchema.parse(made)).toEqual(made);
    expect(made.data.counts).toMatchObject({ compared: 17, rejected: 1 });
    const files = await writeTexts(made, new Date('2026-11-21T12:00:00Z'), join(home, 'reports'));
    expect(files.summary).toBe(join(home, 'reports', 'batch-summary-20261121-120000.txt'));
    const summary = readFileSync(files.summary, 'utf8');
    expect(summary).toContain('17 of 17 totals within 5.0 %');
    expect(summary).toContain('rejected');
    expect(summary).toContain('Recommendations');
    const [head, ...rows] = readFileSync(files.csv, 'utf8').trim().split('\n');
    expect(rows).toHaveLength(18);
    expect(head!.split(',')).toContain('kv_cache_error_bytes');
    const page = pageOfView(validateView(made), { clientScript: '' });
    expect(page).toContain('Errors by component');
    expect(page).not.toMatch(/https?:\/\/(?!www\.w3\.org)/);

    const strict = await validate([join(folder, 'qwen2-1.5b-float32.json')], { tolerance: 0.000_01 });
    expect(strict.data.result).toBe('failed');
    const history = await validationHistory();
    expect(validationHistoryDocumentSchema.parse(history)).toEqual(history);
    expect(history.data.sessions.map(({ result }) => result)).toEqual(['passed', 'failed']);
    for (const view of [validateView(made), validateHistoryView(history)]) {
      const text = terminalView(view, { width: 80 });
      expect(text.split('\n').length).toBeLessThanOrEqual(30);
      for (const line of stripVTControlCharacters(text).split('\n')) {
        expect([...line].length, line).toBeLessThanOrEqual(80);
      }
    }
  });

  it('a profile without configuration asks for it, and is compared once it is given', async () => {
    const { schema_version, memory_measurements, memory_breakdown: parts } = read('llama-2-7b-float16');
    const { total_measured_gb, model_weights_gb, kv_cache_gb, activations_gb } = parts;
    const file = join(home, 'bare.json');
    const bare = {
      schema_version,
      model_info: { name: 'ours' },
      memory_measurements: { peak: memory_measurements.peak },
      memory_breakdown: { total_measured_gb, model_weights_gb, kv_cache_gb, activations_gb },
    };
    writeFileSync(file, JSON.stringify(bare));
    const without = await validate([file], { tolerance: 0.05 });
    expect(without.data.result).toBe('nothing_compared');
    expect(without.data.profiles[0]).toMatchObject({ batch_size: null, input_len: null, output_len: null });
    const [why] = without.data.profiles[0]!.reasons;
    for (const flag of ['--engine', '--model', '--batch-size', '--input-len', '--output-len'])
      expect(why).toContain(flag);
    const sizes = { batchSize: 4, inputLen: 512, outputLen: 48, dtype: 'float16' };
    const given = { tolerance: 0.05, engine: 'transformers', model: 'llama-2-7b', ...sizes };
    const made = await validate([file], given);
    expect(made.data.counts).toMatchObject({ compared: 1, within: 1 });
    // 2 × 32 layers × 4096 × 2 bytes × 512 tokens × 4 sequences: the peak is in prefill.
    const kv = made.data.profiles[0]!.components.find(({ component }) => component === 'kv_cache')!;
    expect(kv.estimated_bytes).toBe(2 * 32 * 4096 * 2 * 512 * 4);
    const own = join(folder, 'llama-2-7b-float16.json');
    await expect(validate([own], { tolerance: 0.05, batchSize: 8 })).rejects.toMatchObject({
      code: 'E_USAGE',
      parts: { what: expect.stringContaining('--batch-size') as string },
    });
  });

  it('rejects sources without a profile', async () => {
    const codeOf = async (run: Promise<unknown>): Promise<string> => {
      const error: unknown = await run.catch((thrown: unknown) => thrown);
      return error instanceof InferscopeError ? error.code : 'none';
    };
    const empty = join(home, 'empty');
    mkdirSync(empty);
    expect(await codeOf(validate([empty], { tolerance: 0.05 }))).toBe('E_USAGE');
    const file = join(empty, 'x.json');
    writeFileSync(file, '{"schema_version": "1.0"}');
    expect(await codeOf(validate([file], { tolerance: 0.05 }))).toBe('E_FORMAT_UNKNOWN');
    expect(await codeOf(validate([join(empty, 'none.json')], { tolerance: 0.05 }))).toBe('E_USAGE');
    expect(await codeOf(validate(['no-such-session'], { tolerance: 0.05 }))).toBe('E_SESSION_NOT_FOUND');
    expect(await codeOf(validationHistory())).toBe('E_USAGE');
  });

  it('shows errors above the tolerance and why', () => {
    const profile = structuredClone(read('llama-3.1-8b-bfloat16'));
    const parts = profile.memory_breakdown;
    parts.components!.find(({ component }) => component === 'activations')!.bytes += 4e9;
    parts.total_measured_bytes! += 4e9;
    const found = held(profile);
    expect(found.result).toBe('failed');
    const text = textOf(found);
    expect(text).toContain('Largest difference in activations: 1.947 GB against 5.947 GB measured (−67 %)');
    // One profile is not enough to change a constant.
    expect(text).toContain('Recommendations None: no constant');
  });
});
