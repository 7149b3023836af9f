import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Command } from 'commander';
import { expect, test } from 'vitest';
import { type SweepContext, expectRuns } from '../capture/sweep/expected.js';
import { pendingRun } from '../capture/sweep/plan.js';
import { InferscopeError } from '../model/errors.js';
import { packageRoot } from '../model/installation.js';
import { findPreset } from '../llm/presets.js';
import { testFolder } from '../session/test-folder.js';
import { readSweepRequest, type SweepOptions } from './sweep-plan.js';
import { defineSweep } from './sweep.js';

/** These words as parsed by commander. */
function options(...words: string[]): SweepOptions {
  const command = new Command('sweep').exitOverride();
  defineSweep([])(command);
  command.parseOptions(words);
  return command.opts();
}

const examples = join(packageRoot(), 'examples', 'sweep');

test.each([
  ['batch-scaling.yaml', 7],
  ['context-length.yaml', 14],
  ['production.yaml', 13],
  ['multi-gpu.yaml', 6],
])('examples/sweep/%s plans %i runs', (name, count) => {
  const sweep = readSweepRequest([], options('--config', join(examples, name)))!;
  expect(sweep.plan.runs).toHaveLength(count);
  expect(sweep.config!.sha256).toMatch(/^[0-9a-f]{64}$/);
  expect(readdirSync(examples)).toHaveLength(4);
});

test('lists are accepted as `1 8 16` and as `1,8,16`', () => {
  const batches = (...words: string[]) =>
    readSweepRequest(
      [],
      options('--model', 'm', '--input-len', '8', '--output-len', '4', ...words),
    )!.plan.runs.map(({ parameters }) => parameters['batch_size']);
  expect(batches('--batch-size', '1', '8', '16')).toEqual([1, 8, 16]);
  expect(batches('--batch-size', '1,8,16')).toEqual([1, 8, 16]);
  expect(batches('--batch-size', '1 8', '--batch-size', '16')).toEqual([1, 8, 16]);
  const both = options(
    '--model',
    'a,b',
    '--dtype',
    'float16',
    'float32',
    '--input-len',
    '8',
    '--output-len',
    '4',
  );
  expect(readSweepRequest([], both)!.plan.runs.map(({ label }) => label)).toEqual([
    'a float16, batch 1, 8 in + 4 out',
    'a float32, batch 1, 8 in + 4 out',
    'b float16, batch 1, 8 in + 4 out',
    'b float32, batch 1, 8 in + 4 out',
  ]);
});

function errorOf(work: () => unknown): { code: string; what: string; why: string; fix: string } {
  try {
    work();
  } catch (error) {
    if (error instanceof InferscopeError) return { code: error.code, ...error.parts };
    throw error;
  }
  throw new Error('it did not fail');
}

test('invalid options are errors before anything runs', () => {
  const sweep = (...words: string[]) => errorOf(() => readSweepRequest([], options(...words)));
  expect(sweep('--model', 'x')).toMatchObject({
    code: 'E_USAGE',
    what: 'a memory sweep needs --input-len and --output-len',
  });
  expect(sweep('--config', 'x.yaml', '--batch-size', '1').what).toContain('--config conflicts');
  expect(sweep('--grid', 'batch-size=1', '--model', 'x').what).toContain('--model does not work with --grid');
  expect(sweep('--grid', 'batch-size=1').what).toBe('--grid needs a command');
  expect(readSweepRequest([], options('--resume'))).toBeNull();
  expect(options('--min-free-disk', '2GiB').minFreeDisk).toBe(2 ** 31);
  const shape = ['--model', 'x', '--input-len', '8', '--output-len', '4'];
  expect(sweep(...shape, '--dtype', 'float12').code).toBe('E_DTYPE');
  expect(errorOf(() => options('--engine', 'transfomers')).fix).toContain('--engine transformers');
  expect(errorOf(() => options('--min-free-disk', 'much')).fix).toBe(
    'Type for example: --min-free-disk 2GiB',
  );
});

test('--url replaces the mode of the file', () => {
  const path = join(testFolder(), 'models.yaml');
  mkdirSync(dirname(path), { recursive: true });
  const model = '{model_id: a, input_lengths: 8, output_lengths: 4, batch_sizes: 1, container_name: vllm-1}';
  for (const mode of ['container', 'host']) {
    writeFileSync(path, `mode: ${mode}\nmodels: [${model}]`);
    const { plan } = readSweepRequest([], options('--config', path, '--url', 'http://localhost:8000/v1'))!;
    expect(plan.runs[0]!.arguments).toEqual(expect.arrayContaining(['--url', 'http://localhost:8000/v1']));
    expect(plan.runs[0]!.arguments).not.toContain('--container');
  }
});

test('an invalid file is an error with line and column', () => {
  const folder = testFolder();
  const file = (text: string) => {
    mkdirSync(folder, { recursive: true });
    const path = join(folder, 'models.yaml');
    writeFileSync(path, text);
    return errorOf(() => readSweepRequest([], options('--config', path)));
  };
  const container = file(
    'mode: container\nmodels:\n  - {model_id: a, input_lengths: 8, output_lengths: 4, batch_sizes: 1, container_name: c}\n' +
      '  - {model_id: b, input_lengths: 8, output_lengths: 4, batch_sizes: 1}\n',
  );
  expect(container).toMatchObject({
    code: 'E_CONFIG_FILE',
    what: expect.stringMatching(/models\.yaml:4:5: b has no container_name$/),
    fix: expect.stringContaining('container_name: vllm-1'),
  });
  expect(
    file('timeout: soon\nmodels: [{model_id: a, input_lengths: 8, output_lengths: 4, batch_sizes: 1}]').what,
  ).toMatch(/:1:1: timeout: "soon" is not a duration/);
  expect(file('engine: onnx\n').what).toContain('models: is missing');
  expect(
    file(
      'command: bench latency\ngrid: {batch-size: [1]}\nmodels: [{model_id: a, input_lengths: 8, output_lengths: 4, batch_sizes: 1}]\n',
    ).what,
  ).toMatch(/:1:1: models: conflicts with command: and grid:/);
  const entry = 'model_id: a, input_lengths: 8, output_lengths: 4, batch_sizes: 1';
  expect(file(`models:\n  - {${entry}, dtype: float12}\n`).what).toMatch(/:2:5: a: unknown dtype "float12"$/);
  expect(file(`models:\n  - {${entry}, model_params: many}\n`).what).toMatch(
    /:2:5: a: invalid --model-params many/,
  );
  expect(file(`engine: vlm\nmodels: [{${entry}}]\n`).what).toMatch(/:1:1: engine: /);
  const two = file('model: 1\nretries: many\n');
  expect(two.what).toMatch(/:1:1: unknown key "model"$/);
  expect(two.why).toMatch(/Also:\n.*:2:1: retries: expected a whole number from 0, found the text "many"/);
  expect(errorOf(() => readSweepRequest([], options('--config', join(folder, 'none.yaml')))).fix).toContain(
    '--init',
  );
});

test('a command of a file, and an unsupported one', () => {
  const folder = testFolder();
  mkdirSync(folder, { recursive: true });
  const path = join(folder, 'grid.yaml');
  writeFileSync(
    path,
    'command: bench latency --model X\ngrid:\n  batch_size: [1, 8]\n  grid_flag: true\ntimeout: 90\n',
  );
  const sweep = readSweepRequest([], options('--config', path))!;
  expect(sweep.timeoutMs).toBe(90_000);
  expect(sweep.plan.runs.map(({ arguments: words }) => words.join(' '))).toEqual([
    'bench latency --model X --batch-size 1 --grid-flag --json',
    'bench latency --model X --batch-size 8 --grid-flag --json',
  ]);
  writeFileSync(path, 'command: benhc latency\ngrid: {batch-size: [1]}\n');
  expect(errorOf(() => readSweepRequest([], options('--config', path))).fix).toBe('Did you mean bench?');
  writeFileSync(path, 'command: ui\ngrid: {batch-size: [1]}\n');
  expect(errorOf(() => readSweepRequest([], options('--config', path))).fix).toContain('-- bench latency');
  writeFileSync(path, 'command: python x.py\ngrid: {batch-size: [1]}\n');
  expect(errorOf(() => readSweepRequest([], options('--config', path))).fix).toContain('run -- python x.py');
});

test('memory of a run is estimated from its dimensions, and runs that do not fit are reported', async () => {
  const words = [
    '--model',
    'llama-2-7b',
    '--input-len',
    '512',
    '--output-len',
    '128',
    '--batch-size',
    '1,64',
  ];
  const { plan, dimensions } = readSweepRequest([], options(...words, '--tensor-parallel-size', '1,2'))!;
  const runs = plan.runs.map((run, i) => pendingRun(run, { number: i + 1, stamp: 's', folder: 'r' }));
  const known: SweepContext = {
    placeOf: async () => ({ engine: 'transformers', device: 'gpu', capacities: [24 * 2 ** 30] }),
    configOf: async (model) => findPreset(model)!.config,
    earlierSeconds: new Map([[runs[0]!.key, 41]]),
  };
  await expectRuns(runs, dimensions, known);
  const [small, large, split] = runs.map(({ expected }) => expected);
  // 6 738 415 616 parameters in 2 bytes, and 640 tokens of 32 layers × 2 × 4096 × 2 bytes, are 13.8 GB.
  expect(small!.memory_bytes!).toBeGreaterThan(13.8e9);
  expect(small!.memory_bytes!).toBeLessThan(16e9);
  expect(small).toMatchObject({
    fits: true,
    seconds: 41,
    basis: 'the duration of an earlier run of this command',
  });
  // 64 sequences have 21.5 GB of KV cache in addition to the weights.
  expect(large).toMatchObject({ fits: false });
  expect(large!.memory_bytes! - small!.memory_bytes!).toBeGreaterThan(63 * 640 * 32 * 2 * 4096 * 2);
  expect(split).toMatchObject({ fits: false, why: 'It needs 2 GPUs; 1 are visible here.' });

  // A cache with one byte per value is half of one with two; nothing is reported for GPUs that are not visible.
  const { parameters } = runs[1]!;
  const halved = { ...runs[1]!, parameters: { ...parameters, kv_cache_dtype: 'fp8' } };
  const placeOf = async () => ({ engine: 'vllm', device: 'gpu', capacities: [] }) as const;
  const whole = { ...runs[1]! };
  await expectRuns([whole, halved], dimensions, { ...known, placeOf });
  const saved = whole.expected.memory_bytes! - halved.expected.memory_bytes!;
  expect(saved / (64 * 640 * 32 * 2 * 4096)).toBeCloseTo(1, 2);
  expect(halved.expected).toMatchObject({ fits: null, capacity_bytes: null });

  const issues = await expectRuns(runs, dimensions, {
    ...known,
    configOf: async (model) => ({ ...findPreset(model)!.config, num_local_experts: 8 }),
  });
  expect(issues).toMatchObject([
    { code: 'config_keys_unread', text: expect.stringMatching(/llama-2-7b.*num_local_experts/) },
  ]);

  const missing = pendingRun(plan.runs[0]!, { number: 9, stamp: 's', folder: 'r' });
  await expectRuns([missing], dimensions, {
    ...known,
    configOf: async () => Promise.reject(new Error('not here')),
  });
  expect(missing.expected).toMatchObject({ memory_bytes: null, fits: null, why: 'not here' });
});

test.each([
  ['onnx', [], 'float32'],
  ['onnx', ['--dtype', 'int4'], 'int4'],
  ['vllm', [], 'float16'],
  [null, [], null],
] as const)('engine %s with %j: the plan has dtype %s, as the run will', async (engine, more, dtype) => {
  const words = ['--model', 'llama-2-7b', '--input-len', '512', '--output-len', '128', ...more];
  const { plan, dimensions } = readSweepRequest([], options(...words))!;
  const run = pendingRun(plan.runs[0]!, { number: 1, stamp: 's', folder: 'r' });
  await expectRuns([run], dimensions, {
    placeOf: async () => ({ engine, device: 'cpu', capacities: [] }),
    configOf: async (model) => findPreset(model)!.config,
    earlierSeconds: new Map(),
  });
  expect(run.parameters['dtype']).toBe(dtype);
  expect(run.parameters['gpu_memory_utilization']).toBe(engine === 'vllm' ? 0.9 : null);
});
