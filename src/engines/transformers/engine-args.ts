import { InferscopeError } from '../../model/errors.js';
import { nearest } from '../../model/nearest.js';

/** Values of --engine-arg for the transformers engine; the process checks the same list (inferscope_engine.py). */
const values = {
  mode: ['eager', 'compile', 'cudagraph'],
  attn: ['sdpa', 'eager', 'flash_attention_2'],
  sync: ['step', 'end'],
  tf32: ['false', 'true'],
} as const;
const keys = [...Object.keys(values), 'threads', 'tensor_parallel_size'];

export interface TransformersArgs {
  /** How a decode step runs: operator by operator, through torch.compile, or as a captured CUDA graph. */
  mode: (typeof values.mode)[number];
  attn: (typeof values.attn)[number];
  /** step: the tokens of each step reach the host before the next step starts; end: the host runs ahead. */
  sync: (typeof values.sync)[number];
  tf32: boolean;
  threads: number | null;
  /** Processes that share the model by its tp_plan, one GPU each. */
  tensorParallelSize: number;
}

/**
 * @param threads from --threads; an engine argument overrides it, so that it can be swept
 * @throws E_USAGE for an unknown key or value, with the nearest known one
 */
export function parseTransformersArgs(
  args: Record<string, string>,
  threads: number | null = null,
): TransformersArgs {
  for (const [key, value] of Object.entries(args)) {
    if (key === 'quantization') throw noQuantization(value);
    if (!keys.includes(key)) {
      throw new InferscopeError('E_USAGE', {
        what: `the transformers engine has no argument ${key}`,
        why: `It knows ${keys.join(', ')}.`,
        fix: suggestion(key, keys, (name) => `${name}=${value}`, 'mode=compile'),
      });
    }
  }
  const count = (key: string, otherwise: number | null) => {
    if (args[key] === undefined) return otherwise;
    const number = Number(args[key]);
    if (Number.isSafeInteger(number) && number >= 1) return number;
    throw new InferscopeError('E_USAGE', {
      what: `--engine-arg ${key}=${args[key]} is impossible`,
      why: 'It is a whole number from 1.',
      fix: `Type for example: --engine-arg ${key}=${key === 'threads' ? 4 : 2}`,
    });
  };
  const parsed: TransformersArgs = {
    mode: oneOf('mode', args),
    attn: oneOf('attn', args),
    sync: oneOf('sync', args),
    tf32: oneOf('tf32', args) === 'true',
    threads: count('threads', threads),
    tensorParallelSize: count('tensor_parallel_size', 1)!,
  };
  if (parsed.tensorParallelSize > 1 && parsed.mode === 'cudagraph') {
    throw new InferscopeError('E_USAGE', {
      what: '--engine-arg mode=cudagraph cannot be combined with tensor_parallel_size',
      why: 'The collectives of the plan are not captured.',
      fix: 'Use --engine-arg mode=eager.',
    });
  }
  if (parsed.mode !== 'eager' && parsed.attn === 'flash_attention_2') {
    throw new InferscopeError('E_USAGE', {
      what: `--engine-arg mode=${parsed.mode} cannot be combined with attn=flash_attention_2`,
      why: 'These modes keep the KV cache at its full length with a mask, which flash_attention_2 does not take.',
      fix: 'Use --engine-arg attn=sdpa.',
    });
  }
  return parsed;
}

/**
 * Rejects options that need a GPU.
 * @throws E_USAGE
 */
export function checkForCpu({ mode, sync, attn }: TransformersArgs): void {
  const gpuOption =
    mode === 'cudagraph'
      ? ['mode=cudagraph', 'CUDA graphs do not exist on the CPU.', 'mode=eager']
      : sync === 'end'
        ? ['sync=end', 'On the CPU the host cannot run ahead of the device: it is the device.', 'sync=step']
        : attn === 'flash_attention_2'
          ? ['attn=flash_attention_2', 'Its kernels are written for GPUs.', 'attn=sdpa']
          : null;
  if (!gpuOption) return;
  throw new InferscopeError('E_USAGE', {
    what: `--engine-arg ${gpuOption[0]} needs a GPU, and this runs on the CPU`,
    why: gpuOption[1]!,
    fix: `Use --engine-arg ${gpuOption[2]}, or a machine with a GPU (inferscope doctor shows what torch sees).`,
  });
}

function oneOf<K extends keyof typeof values>(
  key: K,
  args: Record<string, string>,
): (typeof values)[K][number] {
  const allowed: readonly string[] = values[key];
  const value = args[key] ?? allowed[0]!;
  if (allowed.includes(value)) return value as (typeof values)[K][number];
  throw new InferscopeError('E_USAGE', {
    what: `--engine-arg ${key}=${value} is not known`,
    why: `${key} is one of ${allowed.join(', ')}.`,
    fix: suggestion(value, allowed, (name) => `${key}=${name}`, `${key}=${allowed[0]!}`),
  });
}

/** The argument that was probably meant; the example if no name is similar. */
function suggestion(
  typed: string,
  names: readonly string[],
  argument: (name: string) => string,
  example: string,
): string {
  const meant = nearest(typed, names);
  return meant === null
    ? `Type for example: --engine-arg ${example}`
    : `Did you mean --engine-arg ${argument(meant)}?`;
}

function noQuantization(value: string): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: `the transformers engine cannot quantize (--engine-arg quantization=${value})`,
    why: 'Every quantization of transformers needs its own package (bitsandbytes, torchao, …) with its own kernels.',
    fix: 'Give --model one that was published quantized, with --weights trained, or use --engine vllm.',
  });
}
