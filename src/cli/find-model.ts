import { stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { closest } from 'fastest-levenshtein';
import { readConfig } from '../engines/onnx/model-config.js';
import { enginePresets } from '../engines/onnx/presets.js';
import { findPreset, presets } from '../llm/presets.js';
import { InferscopeError } from '../model/errors.js';

export interface NamedModel {
  name: string;
  config: Record<string, unknown>;
}

/** A preset, a config.json or the folder of one. @throws E_MODEL_NOT_FOUND, E_MODEL_CONFIG */
export async function findModel(spec: string): Promise<NamedModel> {
  const key = spec.trim().toLowerCase();
  const engine = Object.hasOwn(enginePresets, key) ? enginePresets[key] : undefined;
  if (engine) return { name: key, config: engine };
  const preset = findPreset(spec);
  if (preset) return { name: preset.id, config: preset.config };
  const path = resolve(spec);
  const found = await stat(path).catch(() => null);
  if (found === null) throw notFound(spec);
  const file = found.isDirectory() ? join(path, 'config.json') : path;
  return { name: basename(dirname(file)) || 'model', config: await readConfig(file) };
}

function notFound(spec: string): InferscopeError {
  const names = [...Object.keys(enginePresets), ...presets.map(({ id }) => id)];
  return new InferscopeError('E_MODEL_NOT_FOUND', {
    what: `no model "${spec}"`,
    why: `It is neither a file or folder here nor a preset. Presets: ${names.join(', ')}.`,
    fix: `Give the model's config.json, or a preset (nearest name: --model ${closest(spec.trim().toLowerCase(), names)}).`,
  });
}
