import { expect, test } from 'vitest';
import { InferscopeError } from '../../model/errors.js';
import type { MemoryTargets, ModelEntry } from './config.js';
import { parseAxis, planGrid } from './plan-grid.js';
import { planMemory } from './plan-memory.js';
import { modelSlug, outputOf, pendingRun, runKey, stampRun, withoutRepeats } from './plan.js';

const host: MemoryTargets = {
  mode: 'host',
  container: null,
  url: null,
  engine: null,
  engineArgs: [],
  device: null,
  weights: null,
  python: null,
};
const entry: ModelEntry = {
  model_id: 'Qwen/Qwen2.5-0.5B',
  input_lengths: [512, 1024],
  output_lengths: 128,
  batch_sizes: [1, 8],
};

test('every combination of the lists is a run; missing keys have the defaults of `memory`', () => {
  const { runs, varied } = planMemory([entry], host);
  expect(runs.map(({ label }) => label)).toEqual([
    'qwen2.5-0.5b, batch 1, 512 in + 128 out',
    'qwen2.5-0.5b, batch 8, 512 in + 128 out',
    'qwen2.5-0.5b, batch 1, 1024 in + 128 out',
    'qwen2.5-0.5b, batch 8, 1024 in + 128 out',
  ]);
  expect(varied).toEqual(['input_length', 'batch_size']);
  expect(runs[3]!.arguments.join(' ')).toBe(
    'memory --model Qwen/Qwen2.5-0.5B --input-len 1024 --output-len 128 --batch-size 8 --json --yes',
  );
  expect(runs[3]!.parameters).toEqual({
    model_id: 'Qwen/Qwen2.5-0.5B',
    input_length: 1024,
    output_length: 128,
    batch_size: 8,
    dtype: 'float16',
    tensor_parallel_size: 1,
    quantization: null,
    kv_cache_dtype: null,
    gpu_memory_utilization: 0.9,
    max_model_len: null,
    container_name: null,
  });
});

test('every optional key becomes its flag, including the place of the engine', () => {
  const full: ModelEntry = {
    ...entry,
    input_lengths: 8,
    batch_sizes: 2,
    container_name: 'vllm-1',
    dtype: 'bfloat16',
    tensor_parallel_size: 2,
    quantization: 'awq',
    kv_cache_dtype: 'fp8',
    model_params: '0.5B',
    num_layers: 24,
    num_heads: 14,
    num_kv_heads: 2,
    head_dim: 64,
    hidden_size: 896,
    gpu_memory_utilization: 0.8,
    max_model_len: 4096,
  };
  const [run] = planMemory([full], { ...host, mode: 'container', engine: 'vllm', engineArgs: ['a=b'] }).runs;
  expect(run!.arguments.join(' ')).toBe(
    'memory --model Qwen/Qwen2.5-0.5B --input-len 8 --output-len 128 --batch-size 2 --dtype bfloat16 ' +
      '--tensor-parallel-size 2 --quantization awq --kv-cache-dtype fp8 --model-params 0.5B --num-layers 24 ' +
      '--num-heads 14 --num-kv-heads 2 --head-dim 64 --hidden-size 896 --gpu-memory-utilization 0.8 ' +
      '--max-model-len 4096 --engine vllm --engine-arg a=b --container vllm-1 --json --yes',
  );
});

test('container mode rejects an entry without a container', () => {
  const fails = () => planMemory([entry], { ...host, mode: 'container' });
  expect(fails).toThrow(InferscopeError);
  expect(fails).toThrow(/Qwen2\.5-0\.5B has no container_name/);
  expect(planMemory([entry], { ...host, mode: 'container', container: 'c' }).runs).toHaveLength(4);
});

test('a grid fills placeholders, adds the other axes as flags, and gives each run its own folder', () => {
  const { runs, varied } = planGrid(
    ['bench', 'latency', '--model', 'X'],
    [parseAxis('batch-size=1,8'), parseAxis('dtype=float16 bfloat16')],
  );
  expect(runs.map(({ arguments: words }) => words.join(' '))).toEqual([
    'bench latency --model X --batch-size 1 --dtype float16 --json',
    'bench latency --model X --batch-size 1 --dtype bfloat16 --json',
    'bench latency --model X --batch-size 8 --dtype float16 --json',
    'bench latency --model X --batch-size 8 --dtype bfloat16 --json',
  ]);
  expect(varied).toEqual(['batch_size', 'dtype']);
  expect(runs[3]).toMatchObject({
    model: 'X',
    parameters: { batch_size: 8, dtype: 'bfloat16' },
    label: 'batch-size 8, dtype bfloat16',
    writes: 'folder',
  });

  const [program] = planGrid(
    ['inferscope', 'run', '--', 'python', 'x.py', '--n={n}', '--json'],
    [parseAxis('n=3'), { name: 'quiet', values: [true] }],
  ).runs;
  expect(program!.arguments).toEqual(['run', '--quiet', '--json', '--', 'python', 'x.py', '--n=3', '--json']);
  expect(program!.writes).toBeNull();
});

test.each([
  [['batch-size=1,8', 'batch-size=2'], /is given twice/],
  [['model=Y'], /--model is in the command and in the grid/],
  [['batch-size'], /is invalid/],
  [['batch-size='], /is invalid/],
])('rejects axes %j', (axes, message) => {
  expect(() => planGrid(['bench', 'latency', '--model', 'X'], axes.map(parseAxis))).toThrow(message);
});

test('keys depend only on the configuration; file names are unique', () => {
  const { runs } = planMemory([entry, { ...entry, batch_sizes: [8, 16] }], host);
  expect(withoutRepeats({ kind: 'memory', runs, varied: [] }).runs).toHaveLength(6);
  expect(runKey(runs[0]!.arguments)).not.toBe(runKey(runs[1]!.arguments));
  const grid = { ...runs[0]!, writes: 'folder' as const };
  expect(outputOf(grid, 7, '20261121-134502')).toBe('sweep-20261121-134502/run-007');
  // A profile is named when its run starts, and keeps that name when the run is repeated.
  const run = pendingRun(runs[0]!, { number: 7, stamp: 's', folder: 'results' });
  const { key } = run;
  for (const stamp of ['20261121-134502', '20261121-150000']) {
    stampRun(run, stamp);
    expect(run.output).toBe('memory-profiles/Qwen_Qwen2.5-0.5B-profile_20261121-134502.json');
    expect(run.arguments.slice(-2)).toEqual(['--output', `results/${run.output}`]);
  }
  expect(run.key).toBe(key);
});

test.each([
  ['meta-llama/Llama-2-7b-hf', 'llama-2-7b-hf'],
  ['./models/My Model/', 'my-model'],
  ['/a/tiny/config.json', 'tiny'],
  ['models/q4.GGUF', 'q4'],
  ['..', 'model'],
])('%s is called %s in file names', (model, slug) => {
  expect(modelSlug(model)).toBe(slug);
});
