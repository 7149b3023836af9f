import { stat } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import { findPreset, presets } from '../../llm/presets.js';
import { InferscopeError } from '../../model/errors.js';
import { nearestNames } from '../../model/nearest.js';
import { exportedModel, findExport } from './exported-model.js';
import { writableFamilies } from './llama-config.js';
import { readConfig } from './model-config.js';
import type { OnnxModel, ResolveOptions } from './onnx-model.js';
import { enginePresets } from './presets.js';
import { writtenModel } from './written-model.js';

/**
 * Finds or writes the model named by `spec`: a preset, a config.json, a folder with only a config.json, a folder of a
 * Hugging Face ONNX export, or one .onnx file in such a folder.
 * @throws E_MODEL_NOT_FOUND, E_MODEL_FILE, E_MODEL_CONFIG, E_MODEL_ARCHITECTURE, E_DTYPE, E_DISK_FULL,
 * E_HOME_UNWRITABLE
 */
export async function resolveModel(spec: string, options: ResolveOptions): Promise<OnnxModel> {
  const preset = enginePresets[spec.toLowerCase()] ?? findPreset(spec)?.config;
  if (preset) return writtenModel(spec.toLowerCase(), preset, options);
  const path = resolve(spec);
  const entry = await stat(path).catch(() => null);
  if (entry === null) throw notFound(spec);
  if (entry.isFile() && path.endsWith('.onnx'))
    return acceptModel(await exportedModel(path, options.dtype), options);
  if (entry.isFile()) return writtenModel(nameOf(dirname(path)), await readConfig(path), options);
  const exported = await findExport(path, options.dtype);
  if (exported) return acceptModel(await exportedModel(exported, options.dtype), options);
  return writtenModel(nameOf(path), await readConfig(resolve(path, 'config.json')), options);
}

function acceptModel(model: OnnxModel, { accept }: ResolveOptions): OnnxModel {
  accept?.(model);
  return model;
}

function nameOf(folder: string): string {
  return basename(folder) || 'model';
}

function notFound(spec: string): InferscopeError {
  const names = [
    ...Object.keys(enginePresets),
    ...presets
      .filter(({ config }) => writableFamilies.some((f) => f === config['model_type']))
      .map(({ id }) => id),
  ];
  const looksLikePath = /[\\/]|\.(json|onnx)$/.test(spec);
  return new InferscopeError('E_MODEL_NOT_FOUND', {
    what: `no model "${spec}"`,
    why: looksLikePath
      ? `${resolve(spec)} does not exist, and the embedded engine downloads nothing.`
      : `It is neither a file or folder here nor one of the ${names.length} presets that the embedded engine runs: ${nearestNames(names, spec)}.`,
    fix: looksLikePath
      ? 'Pass a config.json, a folder with an ONNX export, or a preset such as --model llama-24m.'
      : 'Type for example: --model llama-24m',
  });
}
