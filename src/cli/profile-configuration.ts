import { Option, type Command } from 'commander';
import { memoryEngines } from '../llm/memory-request.js';
import { unwrapProfile } from '../model/documents/memory-profile.js';
import { InferscopeError } from '../model/errors.js';
import { findModel } from '../engines/model-files/find-model.js';
import type { NamedModel } from '../llm/model-files.js';
import { defineLengthOptions, parseGpuMemoryUtilization } from './memory-options.js';
import { wholeNumberParser } from './numbers.js';

/** Options as typed: configuration that a memory profile of another tool does not state. */
export interface ConfigurationOptions {
  model?: string;
  engine?: string;
  inputLen?: number;
  outputLen?: number;
  batchSize?: number;
  dtype?: string;
  quantization?: string;
  kvCacheDtype?: string;
  tensorParallelSize?: number;
  gpuMemoryUtilization?: number;
  maxModelLen?: number;
}

/** The flags of `memory` and `estimate` for the configuration of a run. */
export function defineConfigurationOptions(command: Command): Command {
  command
    .optionsGroup('Configuration of profiles that do not state it:')
    .option('--model <spec>', 'preset, config.json or a folder that has one')
    .addOption(new Option('--engine <name>', 'engine that ran').choices([...memoryEngines]));
  return defineLengthOptions(command)
    .option(
      '--batch-size <n>',
      'sequences per batch',
      wholeNumberParser('--batch-size', { min: 1, example: 8 }),
    )
    .option('--dtype <dtype>', 'dtype of weights and activations')
    .option('--quantization <method>', 'method in the name that the engine uses')
    .option('--kv-cache-dtype <dtype>', 'dtype of the KV cache')
    .option(
      '--tensor-parallel-size <n>',
      'GPUs that each layer is split over',
      wholeNumberParser('--tensor-parallel-size', { min: 1, example: 2 }),
    )
    .option(
      '--gpu-memory-utilization <share>',
      'share of GPU memory that vLLM used',
      parseGpuMemoryUtilization,
    )
    .option(
      '--max-model-len <n>',
      'maximum sequence length',
      wholeNumberParser('--max-model-len', { min: 1, example: 4096 }),
    );
}

type Fields = Record<string, unknown>;

/** Fills in what profiles do not state. A profile's own values take precedence over flags. */
export interface Configuration {
  /** The profile in a file's JSON, completed with the given configuration. */
  fill(json: unknown): unknown;
  /** @throws E_USAGE for a flag that every profile states itself */
  ensureUsed(): void;
}

/** @throws E_MODEL_NOT_FOUND and other errors of findModel */
export async function readConfiguration(options: ConfigurationOptions): Promise<Configuration> {
  const model = options.model === undefined ? null : await findModel(options.model);
  const values = new Map<string, unknown>(
    configurationKeys.flatMap((key) => (options[key] === undefined ? [] : [[key, options[key]]])),
  );
  const unused = new Set(values.keys());
  const set = (into: Fields, name: string, key: string, value: unknown) => {
    if (!values.has(key) || (into[name] !== undefined && into[name] !== null)) return;
    into[name] = value;
    unused.delete(key);
  };
  return {
    fill(json) {
      const profileJson = unwrapProfile(json);
      if (values.size === 0 || !isFields(profileJson)) return profileJson;
      const profile = structuredClone(profileJson);
      const config = child(child(profile, 'metadata'), 'config');
      for (const key of configurationKeys)
        if (key !== 'model' && key !== 'engine') set(config, snake(key), key, values.get(key));
      set(child(profile, 'engine_metadata'), 'engine_type', 'engine', options.engine);
      if (model) fillModel(profile, model, set);
      return profile;
    },
    ensureUsed() {
      if (unused.size === 0) return;
      const flags = [...unused].map((key) => `--${snake(key).replaceAll('_', '-')}`);
      throw new InferscopeError('E_USAGE', {
        what: `${flags.join(', ')}: every profile states this itself`,
        why: 'Flags fill in missing values; they do not change measured ones.',
        fix: `Remove ${flags.join(', ')}`,
      });
    },
  };
}

const configurationKeys = [
  'model',
  'engine',
  'inputLen',
  'outputLen',
  'batchSize',
  'dtype',
  'quantization',
  'kvCacheDtype',
  'tensorParallelSize',
  'gpuMemoryUtilization',
  'maxModelLen',
] as const satisfies (keyof ConfigurationOptions)[];

function fillModel(
  profile: Fields,
  model: NamedModel,
  set: (into: Fields, name: string, key: string, value: unknown) => void,
): void {
  const info = child(profile, 'model_info');
  set(info, 'name', 'model', model.name);
  set(info, 'config', 'model', model.config);
}

const snake = (key: string): string => key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns the object under a key, created if missing. */
function child(fields: Fields, name: string): Fields {
  const found = fields[name];
  if (isFields(found)) return found;
  return (fields[name] = {}) as Fields;
}
