import { Option, type Command } from 'commander';
import type { EngineName } from '../model/engine.js';
import { InferscopeError } from '../model/errors.js';
import { parseEngineName } from './bench-engines.js';
import { durationParser } from './durations.js';
import { collect } from './command-line.js';
import { examples } from './examples.js';
import { parseThreadCount, wholeNumberParser } from './numbers.js';

/** Options as typed. */
export interface MemoryOptions extends ModelOptions {
  model?: string;
  inputLen?: number;
  outputLen?: number;
  batchSize: number;
  dtype?: string;
  tensorParallelSize: number;
  timeout?: number;
  engine?: EngineName;
  engineArg?: string[];
  weights?: 'random' | 'trained';
  device?: string;
  python?: string;
  threads?: number;
  container?: string;
  url?: string;
  runs: number;
  seed: number;
  snapshot?: boolean;
  output?: string;
  name?: string;
  tag: string[];
  json?: boolean;
  quiet?: boolean;
  yes?: boolean;
}

/** Defaults of `inferscope memory`. */
export const memoryDefaults = { dtype: 'float16', tensorParallelSize: 1, gpuMemoryUtilization: 0.9 } as const;

/** Adds --input-len and --output-len. */
export const defineLengthOptions = (command: Command): Command =>
  command
    .option(
      '--input-len <n>',
      'prompt tokens per sequence',
      wholeNumberParser('--input-len', { min: 1, example: 512 }),
    )
    .option(
      '--output-len <n>',
      'generated tokens per sequence',
      wholeNumberParser('--output-len', { min: 1, example: 512 }),
    );

/** The options of `inferscope memory`. */
export function defineMemoryOptions(command: Command): Command {
  command.option('--model <spec>', 'preset, config.json, folder or hub id, in the form the engine takes');
  defineLengthOptions(command)
    .option(
      '--batch-size <n>',
      'sequences per batch',
      wholeNumberParser('--batch-size', { min: 1, example: 8 }),
      1,
    )
    .option('--dtype <dtype>', `dtype of weights and activations (default: ${memoryDefaults.dtype})`)
    .option(
      '--tensor-parallel-size <n>',
      'GPUs that each layer is split over',
      wholeNumberParser('--tensor-parallel-size', { min: 1, example: 2 }),
      memoryDefaults.tensorParallelSize,
    );
  return defineModelOptions(command)
    .option(
      '--timeout <duration>',
      'stop the engine after this time (600, 10m) and save what was measured',
      parseTimeoutSeconds,
    )
    .addOption(
      new Option(
        '--engine <name>',
        'vllm, transformers or onnx (default: the first that runs on a GPU here, else embedded onnx on the CPU)',
      ).argParser(parseEngineName),
    )
    .option('--engine-arg <key=value>', 'argument for the engine', collect)
    .addOption(
      new Option('--weights <kind>', "random, trained or load (default: the engine's choice)").argParser(
        parseWeights,
      ),
    )
    .option('--device <device>', "cpu, cuda, cuda:1, … (default: the engine's choice)")
    .option('--python <path>', 'Python for engines in Python (default: the first that has the engine)')
    .option('--threads <n>', 'CPU threads for compute', parseThreadCount)
    .option('--container <name>', 'run the engine in this running Docker container')
    .option('--url <url>', 'sample memory of the server at this URL')
    .option('--snapshot', "also record allocations of torch's allocator by call site")
    .option(
      '--runs <n>',
      'timed repeats after warm-up',
      wholeNumberParser('--runs', { min: 1, example: 3 }),
      3,
    )
    .option(
      '--seed <n>',
      'seed for weights and prompts',
      wholeNumberParser('--seed', { min: 0, example: 1 }),
      0,
    )
    .option(
      '--output <file>',
      'file for the profile (default: <model>-profile_<stamp>.json in results/memory-profiles)',
    )
    .option('--name <name>', 'name the session')
    .addOption(new Option('--tag <tag...>', 'tag the session').default([], 'none'))
    .option('--json', 'print the profile (JSON, schema 2.0)')
    .option('--quiet', 'no progress on stderr')
    .option('-y, --yes', 'accepted for scripts: this command never asks')
    .addHelpText(
      'after',
      examples(
        [
          'inferscope memory --model llama-24m --input-len 128 --output-len 32',
          'measure the embedded engine on this CPU',
        ],
        [
          'inferscope memory --model qwen2.5-7b --input-len 512 --output-len 512',
          'measure weights, KV cache, activations and overhead on a GPU',
        ],
      ),
    );
}

/** Options of `memory` and `sweep`: how the model is stored, and dimensions that override config.json. */
export interface ModelOptions {
  quantization?: string;
  kvCacheDtype?: string;
  gpuMemoryUtilization?: number;
  maxModelLen?: number;
  modelParams?: number;
  numLayers?: number;
  numHeads?: number;
  numKvHeads?: number;
  headDim?: number;
  hiddenSize?: number;
}

export function defineModelOptions(command: Command): Command {
  return command
    .option('--quantization <method>', 'method in the name that the engine uses, e.g. awq, gptq, fp8 (vLLM)')
    .option('--kv-cache-dtype <dtype>', 'dtype of the KV cache, e.g. fp8 (vLLM)')
    .option(
      '--gpu-memory-utilization <share>',
      `share of GPU memory that vLLM uses (default: ${memoryDefaults.gpuMemoryUtilization})`,
      parseGpuMemoryUtilization,
    )
    .option(
      '--max-model-len <n>',
      'maximum sequence length of the engine',
      wholeNumberParser('--max-model-len', { min: 1, example: 4096 }),
    )
    .option('--model-params <n>', 'parameter count, e.g. 7B (overrides config.json)', parseParameterCount)
    .option(
      '--num-layers <n>',
      'number of layers (overrides config.json)',
      wholeNumberParser('--num-layers', { min: 1, example: 32 }),
    )
    .option(
      '--num-heads <n>',
      'number of query heads (overrides config.json)',
      wholeNumberParser('--num-heads', { min: 1, example: 32 }),
    )
    .option(
      '--num-kv-heads <n>',
      'number of key/value heads (overrides config.json)',
      wholeNumberParser('--num-kv-heads', { min: 1, example: 8 }),
    )
    .option(
      '--head-dim <n>',
      'head dimension (overrides config.json)',
      wholeNumberParser('--head-dim', { min: 1, example: 128 }),
    )
    .option(
      '--hidden-size <n>',
      'hidden size (overrides config.json)',
      wholeNumberParser('--hidden-size', { min: 1, example: 4096 }),
    );
}

/** 7000000000, 7B, 1.1b, 350M. @throws E_USAGE */
export function parseParameterCount(text: string): number {
  const match = /^\s*(\d+(?:\.\d+)?(?:e\d+)?)\s*([kmbt]?)\s*$/i.exec(text);
  const factor = { '': 1, k: 1e3, m: 1e6, b: 1e9, t: 1e12 }[match?.[2]?.toLowerCase() ?? ''];
  const count = match && factor ? Math.round(Number(match[1]) * factor) : Number.NaN;
  if (Number.isSafeInteger(count) && count > 0) return count;
  throw new InferscopeError('E_USAGE', {
    what: `invalid --model-params ${text}`,
    why: 'It is a number, optionally with suffix k, M, B or T.',
    fix: 'Type for example: --model-params 7B',
  });
}

/** @throws E_USAGE */
export function parseGpuMemoryUtilization(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && value > 0 && value <= 1) return value;
  throw new InferscopeError('E_USAGE', {
    what: `invalid --gpu-memory-utilization ${text}`,
    why: 'It is a share of GPU memory, above 0 and at most 1.',
    fix: 'Type for example: --gpu-memory-utilization 0.9',
  });
}

/** `600`, `10m`. @returns seconds */
function parseTimeoutSeconds(text: string): number {
  return durationParser('--timeout', { example: '10m' })(text) / 1000;
}

/** `load` is the name for published weights in sweep YAML files. */
function parseWeights(text: string): 'random' | 'trained' {
  if (text === 'random') return 'random';
  if (text === 'trained' || text === 'load') return 'trained';
  throw new InferscopeError('E_USAGE', {
    what: `unknown --weights ${text}`,
    why: 'Weights are random (no download) or trained (load is an alias).',
    fix: 'Type --weights random or --weights trained.',
  });
}
