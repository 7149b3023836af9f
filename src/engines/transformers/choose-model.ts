import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import process from 'node:process';
import { findPreset } from '../../llm/presets.js';
import { InferscopeError } from '../../model/errors.js';
import { readConfig } from '../onnx/model-config.js';
import { enginePresets } from '../onnx/presets.js';
import { cachedConfig } from './hub-cache.js';

type Weights = 'random' | 'trained';

/** The model as passed to the process. */
export interface ChosenModel {
  /** As requested; for a folder its name. */
  name: string;
  /** What transformers loads: a hub id or an absolute path. */
  source: string;
  /** config.json; null if only the hub has it. */
  config: Record<string, unknown> | null;
  weights: Weights;
}

/**
 * Finds the dimensions of the model without downloading. Presets and bare config.json files get random weights unless
 * trained ones are requested; folders with weights, and hub models that are not presets, have their own.
 * @throws E_MODEL_NOT_FOUND, E_MODEL_CONFIG, E_USAGE for random weights of a quantized model
 */
export async function chooseModel(
  spec: string,
  weights: Weights | null,
  env: NodeJS.ProcessEnv = process.env,
): Promise<ChosenModel> {
  const enginePreset = enginePresets[spec.toLowerCase()];
  if (enginePreset) {
    if (weights === 'trained')
      throw noWeights(spec, 'It is a preset of inferscope: dimensions without weights.');
    return { name: spec.toLowerCase(), source: spec.toLowerCase(), config: enginePreset, weights: 'random' };
  }
  const preset = findPreset(spec);
  if (preset) {
    const model = { name: spec, source: preset.hub_id, config: preset.config };
    return checkQuantization({ ...model, weights: weights ?? 'random' });
  }
  const path = resolve(spec);
  const entry = await stat(path).catch(() => null);
  if (entry) return checkQuantization(await modelAt(path, entry.isFile(), weights));
  if (/^[\w.-]+\/[\w.-]+$/.test(spec) && !spec.startsWith('.') && !spec.endsWith('.json')) {
    const config = await cachedConfig(spec, env);
    if (weights === 'random' && !config) throw onlyOnTheHub(spec);
    return checkQuantization({ name: spec, source: spec, config, weights: weights ?? 'trained' });
  }
  throw notFound(spec);
}

async function modelAt(path: string, isFile: boolean, weights: Weights | null): Promise<ChosenModel> {
  const config = await readConfig(isFile ? path : join(path, 'config.json'));
  const folder = isFile ? dirname(path) : path;
  const hasWeights = !isFile && (await readdir(folder)).some((name) => /\.(safetensors|bin)$/.test(name));
  if (weights === 'trained' && !hasWeights) {
    throw noWeights(
      path,
      isFile ? 'It is a config.json: dimensions only.' : 'The folder has no .safetensors or .bin file.',
    );
  }
  return {
    name: basename(folder) || 'model',
    source: path,
    config,
    weights: weights ?? (hasWeights ? 'trained' : 'random'),
  };
}

function checkQuantization(model: ChosenModel): ChosenModel {
  const method = quantizationOf(model.config);
  if (model.weights === 'trained' || method === null) return model;
  throw new InferscopeError('E_USAGE', {
    what: `${model.name} is quantized (${method}), and random weights are not`,
    why: 'Built from its dimensions alone it would run other kernels and need more memory than the published model.',
    fix: 'Take --weights trained, which loads it as it was published, or a model that is not quantized.',
  });
}

/** `quantization_config.quant_method`, e.g. gptq; null if it is not quantized. */
export function quantizationOf(config: Record<string, unknown> | null): string | null {
  const quantization = config?.['quantization_config'];
  if (typeof quantization !== 'object' || quantization === null) return null;
  const method: unknown = 'quant_method' in quantization ? quantization.quant_method : null;
  return typeof method === 'string' ? method : 'unknown';
}

function noWeights(spec: string, why: string): InferscopeError {
  return new InferscopeError('E_MODEL_NOT_FOUND', {
    what: `${spec} has no trained weights`,
    why,
    fix: 'Leave --weights out: random weights are as fast and as large.',
  });
}

function onlyOnTheHub(spec: string): InferscopeError {
  return new InferscopeError('E_MODEL_NOT_FOUND', {
    what: `the dimensions of ${spec} are not known here`,
    why: '--weights random downloads nothing, and it is neither a preset nor in the cache of the hub.',
    fix: `Give its config.json (--model ./config.json), take --weights trained, which downloads it, or a preset such as --model tinyllama-1.1b.`,
  });
}

function notFound(spec: string): InferscopeError {
  const isPath = /[\\/]|\.json$/.test(spec);
  return new InferscopeError('E_MODEL_NOT_FOUND', {
    what: `no model "${spec}"`,
    why: isPath
      ? `${resolve(spec)} does not exist.`
      : 'It is not a file or folder here, not a preset, and not a hub id (owner/name).',
    fix: isPath
      ? 'Pass a config.json, a folder with one, a hub id (owner/name), or a preset such as --model tinyllama-1.1b.'
      : 'Type for example: --model tinyllama-1.1b',
  });
}
