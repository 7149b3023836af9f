import type { SlurmOptions } from './slurm-options.js';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import {
  sweepConfigSchema,
  type MemoryTargets,
  type ModelEntry,
  type SweepConfig,
} from '../capture/sweep/config.js';
import { parseAxis, planGrid, type GridAxis } from '../capture/sweep/plan-grid.js';
import { checkRuns, planMemory } from '../capture/sweep/plan-memory.js';
import { runKey, withoutRepeats, type SweepPlan } from '../capture/sweep/plan.js';
import { parseDType } from '../model/dtype.js';
import { nearest } from '../model/nearest.js';
import { InferscopeError } from '../model/errors.js';
import { checkGrid } from '../model/grid.js';
import { areAfterDashes } from './command-line.js';
import { readText } from './config.js';
import { durationMs } from './durations.js';
import { parseParameterCount, type ModelOptions } from './memory-options.js';
import { readYaml, type YamlFile } from './yaml-file.js';

/** Options as typed. */
export interface SweepOptions extends ModelOptions, SlurmOptions {
  jobs?: number;
  config?: string;
  init?: string | true;
  grid: string[];
  model?: string[];
  inputLen?: number[];
  outputLen?: number[];
  batchSize?: number[];
  dtype?: string[];
  tensorParallelSize?: number[];
  engine?: string;
  engineArg?: string[];
  device?: string;
  weights?: string;
  python?: string;
  container?: string | true;
  url?: string;
  dryRun?: boolean;
  resume?: string | true;
  retryFailed?: boolean;
  /** Milliseconds. */
  timeout?: number;
  retries?: number;
  minFreeDisk?: number;
  output: string;
  name?: string;
  json?: boolean;
  quiet?: boolean;
}

export interface RequestedSweep {
  plan: SweepPlan;
  config: { path: string; sha256: string } | null;
  /** Model dimensions given by an entry, by the key of its runs. */
  dimensions: ReadonlyMap<string, Partial<ModelEntry>>;
  timeoutMs: number | null;
  retries: number | null;
}

/** Commands allowed after `sweep --grid … --`. */
const verbs = ['bench', 'estimate', 'gemm', 'kernels', 'memory', 'predict', 'profile', 'roofline', 'run'];

const memoryFlags = ['model', 'inputLen', 'outputLen', 'batchSize'] as const;

/**
 * Runs of a file, a grid, or flags. Null without any of them (`--resume` alone).
 * @throws E_USAGE, E_CONFIG_FILE with line and column
 */
export function readSweepRequest(command: readonly string[], options: SweepOptions): RequestedSweep | null {
  requireDashes(command);
  const flags = memoryFlags.filter((name) => options[name] !== undefined);
  if (options.config !== undefined) {
    if (flags.length > 0 || command.length > 0 || options.grid.length > 0)
      throw usage(
        '--config conflicts with other options',
        'The file names models, lengths and batch sizes, or a command and its grid.',
        'Remove --config, or move the other options into the file.',
      );
    return readSweepFile(options.config, options);
  }
  const withoutFile = {
    config: null,
    dimensions: new Map<string, ModelEntry>(),
    timeoutMs: null,
    retries: null,
  };
  if (command.length > 0 || options.grid.length > 0) {
    if (flags.length > 0)
      throw usage(
        `--${flags[0]!.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)} does not work with --grid`,
        'The command after -- has its own flags.',
        'Make it an axis (--grid batch-size=1,8), or put it after --.',
      );
    return { ...withoutFile, plan: gridPlan(command, options.grid.map(parseAxis)) };
  }
  if (flags.length === 0) return null;
  return { ...withoutFile, ...memorySweep(entriesOf(options), targetsOf(options, {})) };
}

function gridPlan(command: readonly string[], axes: readonly GridAxis[]): SweepPlan {
  const [verb] = command[0] === 'inferscope' ? command.slice(1) : command;
  if (verb === undefined)
    throw usage(
      '--grid needs a command',
      'A grid varies the flags of an inferscope command.',
      'Type for example: inferscope sweep --grid batch-size=1,8 -- bench latency --model X',
    );
  const suggestion = nearest(verb, verbs);
  if (!verbs.includes(verb))
    throw usage(
      `sweep does not support the command "${verb}"`,
      `Commands allowed after --: ${verbs.join(', ')}.`,
      verb.includes('python')
        ? `To run a program, use run: inferscope sweep --grid … -- run -- ${command.join(' ')}`
        : suggestion !== null
          ? `Did you mean ${suggestion}?`
          : 'Type for example: inferscope sweep --grid batch-size=1,8 -- bench latency',
    );
  return withoutRepeats(planGrid(command, axes));
}

function memorySweep(
  entries: readonly ModelEntry[],
  targets: MemoryTargets,
  refuse?: Parameters<typeof planMemory>[2],
): Pick<RequestedSweep, 'plan' | 'dimensions'> {
  checkRuns(entries);
  for (const [index, entry] of entries.entries()) checkEntry(entry, index, refuse);
  const plans = entries.map((entry, index) =>
    planMemory([entry], targets, refuse && ((_, what, fix) => refuse(index, what, fix))),
  );
  const dimensions = new Map(
    plans.flatMap(({ runs }, index) => runs.map((run) => [runKey(run.arguments), entries[index]!] as const)),
  );
  return { plan: withoutRepeats(planMemory(entries, targets, refuse)), dimensions };
}

/** Checks dtype and parameter count of an entry before the first run. @throws E_DTYPE, E_USAGE, E_CONFIG_FILE */
function checkEntry(entry: ModelEntry, index: number, refuse?: Parameters<typeof planMemory>[2]): void {
  try {
    if (typeof entry.dtype === 'string') parseDType(entry.dtype);
    if (typeof entry.model_params === 'string') parseParameterCount(entry.model_params);
  } catch (error) {
    if (!refuse || !(error instanceof InferscopeError)) throw error;
    const { what, why } = error.parts;
    throw refuse(index, `${entry.model_id}: ${what}`, why);
  }
}

/** Every combination of models, dtypes and ranks is an entry, as in a file. */
function entriesOf(options: SweepOptions): ModelEntry[] {
  const missing = memoryFlags.filter((name) => options[name] === undefined && name !== 'batchSize');
  if (missing.length > 0)
    throw usage(
      `a memory sweep needs ${missing.map((name) => ({ model: '--model', inputLen: '--input-len', outputLen: '--output-len' })[name as 'model']).join(' and ')}`,
      'Each run needs a model, a prompt length and an output length; the batch size is 1 by default.',
      'Type for example: inferscope sweep --model M --input-len 512 --output-len 128 --batch-size 1 8 16',
    );
  const sharedFields = {
    input_lengths: options.inputLen!,
    output_lengths: options.outputLen!,
    batch_sizes: options.batchSize ?? [1],
    quantization: options.quantization,
    kv_cache_dtype: options.kvCacheDtype,
    model_params: options.modelParams,
    num_layers: options.numLayers,
    num_heads: options.numHeads,
    num_kv_heads: options.numKvHeads,
    head_dim: options.headDim,
    hidden_size: options.hiddenSize,
    gpu_memory_utilization: options.gpuMemoryUtilization,
    max_model_len: options.maxModelLen,
  };
  const { model, dtype, tensorParallelSize } = options;
  checkGrid(
    {
      '--model': model!.length,
      '--dtype': dtype?.length ?? 1,
      '--tensor-parallel-size': tensorParallelSize?.length ?? 1,
      '--input-len': sharedFields.input_lengths.length,
      '--output-len': sharedFields.output_lengths.length,
      '--batch-size': sharedFields.batch_sizes.length,
    },
    'runs',
  );
  return model!.flatMap((model_id) =>
    (dtype ?? [undefined]).flatMap((choice) =>
      (tensorParallelSize ?? [undefined]).map((tensor_parallel_size) => ({
        model_id,
        dtype: choice,
        tensor_parallel_size,
        ...sharedFields,
      })),
    ),
  );
}

/** Flags override the file. */
function targetsOf(options: SweepOptions, config: SweepConfig): MemoryTargets {
  const url = options.url ?? config.url ?? null;
  const mode =
    options.container !== undefined
      ? 'container'
      : options.url !== undefined
        ? 'url'
        : (config.mode ?? (url === null ? 'host' : 'url'));
  if (mode === 'url' && url === null)
    throw usage(
      'mode: url needs url:',
      'In this mode the engine is a server.',
      'Add url: http://127.0.0.1:8000/v1',
    );
  return {
    mode,
    container: typeof options.container === 'string' ? options.container : null,
    url,
    engine: options.engine ?? config.engine ?? null,
    engineArgs: options.engineArg ?? config.engine_args ?? [],
    device: options.device ?? config.device ?? null,
    weights: options.weights ?? config.weights ?? null,
    python: options.python ?? config.python ?? null,
  };
}

function readSweepFile(path: string, options: SweepOptions): RequestedSweep {
  if (!existsSync(path))
    throw new InferscopeError('E_CONFIG_FILE', {
      what: `${path} does not exist`,
      why: '--config needs the YAML file of a sweep.',
      fix: `To write a commented template, type: inferscope sweep --init ${path}`,
    });
  const text = readText(path);
  const file = readYaml(text, sweepConfigSchema, ([first, ...more]) =>
    configFault(
      path,
      first.where,
      first.text,
      first.fix,
      more.map(({ where, text: what, fix }) => `${path}${where}: ${what}. ${fix}`),
    ),
  );
  const { value: config } = file;
  const shared = {
    config: { path: resolve(path), sha256: createHash('sha256').update(text).digest('hex') },
    timeoutMs: timeoutOf(config.timeout, path, file),
    retries: config.retries ?? null,
  };
  if (config.models && (config.command !== undefined || config.grid))
    throw configFault(
      path,
      file.where(['command' in config ? 'command' : 'grid']),
      'models: conflicts with command: and grid:',
      'A file is a memory sweep (models:) or a sweep of a command (command: and grid:). Split it into two files.',
    );
  if (config.models) {
    const refuse = (entry: number, what: string, fix: string) =>
      configFault(path, file.where(['models', entry]), what, fix);
    const targets = targetsOf(options, config);
    return { ...shared, ...memorySweep(config.models, targets, refuse) };
  }
  if (config.command === undefined || config.grid === undefined)
    throw configFault(
      path,
      file.where([]),
      'models: is missing',
      'A memory sweep needs models:, a sweep of another command needs command: and grid:. inferscope sweep --init shows both.',
    );
  const words = typeof config.command === 'string' ? config.command.trim().split(/\s+/) : config.command;
  const axes = Object.entries(config.grid).map(([name, values]): GridAxis => ({
    name: name.replaceAll('_', '-'),
    values: Array.isArray(values) ? values : [values],
  }));
  return { ...shared, plan: gridPlan(words, axes), dimensions: new Map() };
}

function timeoutOf(value: SweepConfig['timeout'], path: string, file: YamlFile<SweepConfig>): number | null {
  if (value === undefined) return null;
  if (typeof value === 'number') return value * 1000;
  const ms = durationMs(value);
  if (ms !== null && ms > 0) return ms;
  throw configFault(
    path,
    file.where(['timeout']),
    `timeout: ${JSON.stringify(value)} is not a duration`,
    'Write for example timeout: 30m',
  );
}

function configFault(
  path: string,
  where: string,
  what: string,
  fix: string,
  more: readonly string[] = [],
): InferscopeError {
  return new InferscopeError('E_CONFIG_FILE', {
    what: `${path}${where}: ${what}`,
    why: more.length > 0 ? [`Nothing was run. Also:`, ...more].join('\n') : 'Nothing was run.',
    fix,
  });
}

function usage(what: string, why: string, fix: string): InferscopeError {
  return new InferscopeError('E_USAGE', { what, why, fix });
}

function requireDashes(command: readonly string[]): void {
  if (command.length === 0 || areAfterDashes(command)) return;
  const words = command.filter((word) => word !== '--');
  const first = words.findIndex((word) => !/^[a-z][\w-]*=/.test(word));
  const axes = words.slice(0, first < 0 ? words.length : first);
  if (axes.length > 0)
    throw usage(
      `sweep has no --grid before ${axes[0]}`,
      'Each axis of a grid has its own --grid; words without one are the command, after --.',
      `Type: inferscope sweep --grid … ${axes.map((axis) => `--grid ${axis}`).join(' ')} -- ${words.slice(axes.length).join(' ') || 'bench latency'}`,
    );
  throw usage(
    `sweep needs -- before the command (${command[0]})`,
    'Options before -- are for the sweep; the command to repeat comes after it.',
    `Type: inferscope sweep --grid batch-size=1,8 -- ${words.join(' ')}`,
  );
}
