import { Option, type Command } from 'commander';
import { memoryEngines } from '../llm/memory-request.js';
import { profileInside } from '../model/documents/memory-profile.js';
import { InferscopeError } from '../model/errors.js';
import { findModel } from '../engines/model-files/find-model.js';
import type { NamedModel } from '../llm/model-files.js';
import { shareOf } from './memory-options.js';
import { wholeNumber } from './numbers.js';

/** As typed: what a memory profile of another tool does not say of its run. */
export interface ConfigurationTyped {
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

/** The flags of `memory` and `estimate` that say how a run was configured. */
export function configurationOptions(command: Command): Command {
  return command
    .optionsGroup('Configuration of profiles that do not state it:')
    .option('--model <spec>', 'preset, config.json or the folder of one')
    .addOption(new Option('--engine <name>', 'what ran it').choices([...memoryEngines]))
    .option('--input-len <n>', 'prompt tokens of a sequence', wholeNumber('--input-len', 1, 512))
    .option('--output-len <n>', 'tokens generated of a sequence', wholeNumber('--output-len', 1, 512))
    .option('--batch-size <n>', 'sequences at once', wholeNumber('--batch-size', 1, 8))
    .option('--dtype <dtype>', 'of weights and activations')
    .option('--quantization <method>', 'as the engine calls it')
    .option('--kv-cache-dtype <dtype>', 'of the KV cache')
    .option(
      '--tensor-parallel-size <n>',
      'GPUs that share the model',
      wholeNumber('--tensor-parallel-size', 1, 2),
    )
    .option(
      '--gpu-memory-utilization <share>',
      'of a GPU that vLLM takes',
      shareOf('--gpu-memory-utilization'),
    )
    .option('--max-model-len <n>', 'longest sequence allowed', wholeNumber('--max-model-len', 1, 4096));
}

type Fields = Record<string, unknown>;

/** Fills what profiles do not state. What a profile states itself goes before the flags. */
export interface Configuration {
  /** The profile inside a file's JSON, with the given configuration where it has none. */
  fill(json: unknown): unknown;
  /** @throws E_USAGE for a flag that no profile lacked */
  ensureUsed(): void;
}

/** @throws E_MODEL_NOT_FOUND and others of findModel */
export async function configurationOf(typed: ConfigurationTyped): Promise<Configuration> {
  const model = typed.model === undefined ? null : await findModel(typed.model);
  const given = new Map<string, unknown>(
    configurationKeys.flatMap((key) => (typed[key] === undefined ? [] : [[key, typed[key]]])),
  );
  const unused = new Set(given.keys());
  const set = (into: Fields, name: string, key: string, value: unknown) => {
    if (!given.has(key) || (into[name] !== undefined && into[name] !== null)) return;
    into[name] = value;
    unused.delete(key);
  };
  return {
    fill(json) {
      const inside = profileInside(json);
      if (given.size === 0 || !isFields(inside)) return inside;
      const profile = structuredClone(inside);
      const config = child(child(profile, 'metadata'), 'config');
      for (const key of configurationKeys)
        if (key !== 'model' && key !== 'engine') set(config, snake(key), key, given.get(key));
      set(child(profile, 'engine_metadata'), 'engine_type', 'engine', typed.engine);
      if (model) fillModel(profile, model, set);
      return profile;
    },
    ensureUsed() {
      if (unused.size === 0) return;
      const flags = [...unused].map((key) => `--${snake(key).replaceAll('_', '-')}`);
      throw new InferscopeError('E_USAGE', {
        what: `${flags.join(', ')}: every profile states this itself`,
        why: 'Flags give what a profile lacks; they do not change what was measured.',
        fix: `Leave out ${flags.join(', ')}`,
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
] as const satisfies (keyof ConfigurationTyped)[];

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

/** The object under a name, made where there is none. */
function child(of: Fields, name: string): Fields {
  const found = of[name];
  if (isFields(found)) return found;
  return (of[name] = {}) as Fields;
}
