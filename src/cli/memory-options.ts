import { Option, type Command } from 'commander';
import type { EngineName } from '../model/engine.js';
import { InferscopeError } from '../model/errors.js';
import { engineName } from './bench-engines.js';
import { duration } from './durations.js';
import { examples } from './examples.js';
import { threadCount, wholeNumber } from './numbers.js';

/** As typed. */
export interface MemoryTyped extends ModelTyped {
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

/** What B1 takes when nothing is typed. */
export const memoryDefaults = { dtype: 'float16', tensorParallelSize: 1, gpuMemoryUtilization: 0.9 } as const;

const collect = (text: string, before: string[] = []): string[] => [...before, text];

/** The options of `inferscope memory`. */
export function memoryOptions(command: Command): Command {
  command
    .option('--model <spec>', 'preset, config.json, folder or hub id, as the engine takes it')
    .option('--input-len <n>', 'prompt tokens of a sequence', wholeNumber('--input-len', 1, 512))
    .option('--output-len <n>', 'tokens generated of a sequence', wholeNumber('--output-len', 1, 512))
    .option('--batch-size <n>', 'sequences at once', wholeNumber('--batch-size', 1, 8), 1)
    .option('--dtype <dtype>', `of weights and activations (default: ${memoryDefaults.dtype})`)
    .option(
      '--tensor-parallel-size <n>',
      'GPUs that share the model',
      wholeNumber('--tensor-parallel-size', 1, 2),
      memoryDefaults.tensorParallelSize,
    );
  return modelOptions(command)
    .option(
      '--timeout <duration>',
      'stop the engine after this (600 s, 10m), keep what was measured',
      seconds,
    )
    .addOption(
      new Option(
        '--engine <name>',
        'transformers, vllm or onnx (default: what runs here on a GPU, else onnx, embedded, on the CPU)',
      ).argParser(engineName),
    )
    .option('--engine-arg <key=value>', 'reaches the engine', collect)
    .addOption(
      new Option('--weights <kind>', "random, trained or load (default: the engine's own choice)").argParser(
        weightsKind,
      ),
    )
    .option('--device <device>', "cpu, cuda, cuda:1, … (default: the engine's own choice)")
    .option('--python <path>', 'interpreter of engines in Python (default: the one that has the engine)')
    .option('--threads <n>', 'CPU threads that compute', threadCount)
    .option('--container <name>', 'the engine runs in this Docker container, which is up')
    .option('--url <url>', 'the engine is a server there: memory is sampled beside')
    .option('--snapshot', "also allocations by place in the program, of torch's allocator")
    .option('--runs <n>', 'timed repeats after warm-up', wholeNumber('--runs', 1, 3), 3)
    .option('--seed <n>', 'of weights and prompts', wholeNumber('--seed', 0, 1), 0)
    .option(
      '--output <file>',
      'the profile (default: <model>-profile_<stamp>.json in results/memory-profiles)',
    )
    .option('--name <name>', 'name the session')
    .addOption(new Option('--tag <tag...>', 'tag the session').default([], 'none'))
    .option('--json', 'print the profile (JSON, schema 2.0)')
    .option('--quiet', 'no progress on stderr')
    .option('-y, --yes', 'ask nothing')
    .addHelpText(
      'after',
      examples(
        [
          'inferscope memory --model llama-24m --input-len 128 --output-len 32',
          'the embedded engine on this CPU: where its memory goes',
        ],
        [
          'inferscope memory --model qwen2.5-7b --input-len 512 --output-len 512',
          'on a GPU: weights, KV cache, activations and overhead, measured',
        ],
      ),
    );
}

/** How a model is stored, and its dimensions where config.json lacks them or is wrong: of `memory` and of `sweep`. */
export interface ModelTyped {
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

export function modelOptions(command: Command): Command {
  return command
    .option('--quantization <method>', 'as the engine calls it, e.g. awq, gptq, fp8 (vLLM)')
    .option('--kv-cache-dtype <dtype>', 'of the KV cache, e.g. fp8 (vLLM)')
    .option(
      '--gpu-memory-utilization <share>',
      `of a GPU that vLLM takes (default: ${memoryDefaults.gpuMemoryUtilization})`,
      shareOf('--gpu-memory-utilization'),
    )
    .option(
      '--max-model-len <n>',
      'longest sequence that the engine allows',
      wholeNumber('--max-model-len', 1, 4096),
    )
    .option('--model-params <n>', 'parameters, e.g. 7B; goes before config.json', parameterCount)
    .option(
      '--num-layers <n>',
      'layers; goes before config.json, as the next four do',
      wholeNumber('--num-layers', 1, 32),
    )
    .option('--num-heads <n>', 'query heads', wholeNumber('--num-heads', 1, 32))
    .option('--num-kv-heads <n>', 'key/value heads', wholeNumber('--num-kv-heads', 1, 8))
    .option('--head-dim <n>', 'width of a head', wholeNumber('--head-dim', 1, 128))
    .option('--hidden-size <n>', 'width of the residual stream', wholeNumber('--hidden-size', 1, 4096));
}

/** 7000000000, 7B, 1.1b, 350M. @throws E_USAGE */
export function parameterCount(text: string): number {
  const match = /^\s*(\d+(?:\.\d+)?(?:e\d+)?)\s*([kmbt]?)\s*$/i.exec(text);
  const factor = { '': 1, k: 1e3, m: 1e6, b: 1e9, t: 1e12 }[match?.[2]?.toLowerCase() ?? ''];
  const count = match && factor ? Math.round(Number(match[1]) * factor) : Number.NaN;
  if (Number.isSafeInteger(count) && count > 0) return count;
  throw new InferscopeError('E_USAGE', {
    what: `--model-params ${text} is no number of parameters`,
    why: 'It is a count, with k, M, B or T behind it where that is shorter.',
    fix: 'Type for example: --model-params 7B',
  });
}

export function shareOf(flag: string): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() !== '' && value > 0 && value <= 1) return value;
    throw new InferscopeError('E_USAGE', {
      what: `${flag} ${text} is impossible`,
      why: 'It is a share of the GPU, above 0 and at most 1.',
      fix: `Type for example: ${flag} 0.9`,
    });
  };
}

/** `600`, `10m`. @returns seconds */
function seconds(text: string): number {
  return duration('--timeout', '10m')(text) / 1000;
}

/** `load` is the word of sweeps' YAML for the published weights. */
function weightsKind(text: string): 'random' | 'trained' {
  if (text === 'random') return 'random';
  if (text === 'trained' || text === 'load') return 'trained';
  throw new InferscopeError('E_USAGE', {
    what: `--weights ${text} is not known`,
    why: 'Weights are random (nothing is downloaded) or trained (load means the same).',
    fix: 'Type --weights random or --weights trained.',
  });
}
