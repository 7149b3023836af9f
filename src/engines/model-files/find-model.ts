import { stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { readConfig } from '../onnx/model-config.js';
import { enginePresets } from '../onnx/presets.js';
import { cachedSnapshot } from '../transformers/hub-cache.js';
import type { NamedModel, SizedModel } from '../../llm/model-files.js';
import { findBaseOf, findPreset, presets } from '../../llm/presets.js';
import { InferscopeError } from '../../model/errors.js';
import { nearestNames } from '../../model/nearest.js';
import { folderWeights, ggufModel, ggufOfFolder } from './find-model-files.js';
import { hubHeaders, hubModel, hubUrl, isHubId } from './find-model-hub.js';

/**
 * Finds a preset, a config.json, a folder with one, a safetensors or a GGUF file.
 * @throws E_MODEL_NOT_FOUND, E_MODEL_CONFIG, E_MODEL_FILE, E_MODEL_ARCHITECTURE
 */
export async function findModel(spec: string): Promise<NamedModel> {
  const model = bundledModel(spec) ?? (await modelOfPath(resolve(spec), false)) ?? bundledBase(spec);
  if (model === null) throw notFound(spec);
  return model;
}

/**
 * As `findModel`, with sizes from the files' headers. After local files it looks in the cache of huggingface_hub, then
 * on the hub: `owner/name`, or a GGUF as `owner/name/file.gguf` or by its URL.
 * @throws as findModel, and E_SERVER_UNREACHABLE, E_MODEL_ACCESS
 */
export async function findSizedModel(spec: string): Promise<SizedModel> {
  const preset = bundledModel(spec);
  if (preset) return { ...preset, weights: null, withoutWeights: null };
  if (/^https?:\/\/.*\.gguf(\?.*)?$/i.test(spec)) {
    // The token is for the hub only and is not sent to other hosts.
    const isHub = spec.startsWith(`${hubUrl()}/`);
    return { ...(await ggufModel(spec, isHub ? { headers: hubHeaders() } : {})), withoutWeights: null };
  }
  const local = await modelOfPath(resolve(spec), true);
  if (local) return local;
  const hubFile = /^([\w.-]+\/[\w.-]+)\/(.+\.gguf)$/i.exec(spec);
  if (hubFile) {
    const url = `${hubUrl()}/${hubFile[1]}/resolve/main/${hubFile[2]}`;
    return { ...(await ggufModel(url, { headers: hubHeaders() })), withoutWeights: null };
  }
  const base = bundledBase(spec);
  if (!isHubId(spec)) {
    if (base) return { ...base, weights: null, withoutWeights: null };
    throw notFound(spec);
  }
  const snapshot = await cachedSnapshot(spec);
  const cached = snapshot === null ? null : await modelOfPath(snapshot, true);
  if (cached) return { ...cached, name: spec };
  if (base) return { ...base, weights: null, withoutWeights: null };
  return { name: spec, ...(await hubModel(spec)) };
}

function bundledModel(spec: string): NamedModel | null {
  const key = spec.trim().toLowerCase();
  const engine = Object.hasOwn(enginePresets, key) ? enginePresets[key] : undefined;
  if (engine) return { name: key, config: engine };
  const preset = findPreset(spec);
  return preset ? { name: preset.id, config: preset.config } : null;
}

/** A tuned model has the shape of its bundled base, and its name identifies the base. */
function bundledBase(spec: string): NamedModel | null {
  const base = findBaseOf(spec);
  return base && { name: `${spec.trim()}, with the dimensions of ${base.id}`, config: base.config };
}

async function modelOfPath(path: string, sized: boolean): Promise<SizedModel | null> {
  const entry = await stat(path).catch(() => null);
  if (entry === null) return null;
  if (!entry.isDirectory()) {
    if (/\.gguf$/i.test(path)) return { ...(await ggufModel(path)), withoutWeights: null };
    const folder = dirname(path);
    const inFolder = path.endsWith('.safetensors') || basename(path) === 'config.json';
    return modelOfFolder(inFolder ? join(folder, 'config.json') : path, sized && inFolder);
  }
  const config = join(path, 'config.json');
  if ((await stat(config).catch(() => null)) === null) {
    const file = await ggufOfFolder(path);
    if (file !== null) return { ...(await ggufModel(file)), withoutWeights: null };
  }
  return modelOfFolder(config, sized);
}

/** With a damaged or missing file the model can still be computed; the reason is reported instead of sizes. */
async function modelOfFolder(configFile: string, sized: boolean): Promise<SizedModel> {
  const config = await readConfig(configFile);
  const folder = dirname(configFile);
  const model = { name: basename(folder) || 'model', config };
  if (!sized) return { ...model, weights: null, withoutWeights: null };
  try {
    return { ...model, weights: await folderWeights(folder, config), withoutWeights: null };
  } catch (error) {
    if (!(error instanceof InferscopeError) || error.code !== 'E_MODEL_FILE') throw error;
    return { ...model, weights: null, withoutWeights: `${error.parts.what}: ${error.parts.why}` };
  }
}

function notFound(spec: string): InferscopeError {
  const names = [...Object.keys(enginePresets), ...presets.map(({ id }) => id)];
  return new InferscopeError('E_MODEL_NOT_FOUND', {
    what: `no model "${spec}"`,
    why: `It is neither a file or folder here nor one of ${names.length} presets: ${nearestNames(names, spec)}.`,
    fix: `Give the model's config.json, or a preset; inferscope estimate --gpu H200 --fits lists the ${presets.length} published ones.`,
  });
}
