import { InferscopeError } from '../model/errors.js';
import type { Architecture } from './architecture.js';
import { readArchitecture } from './read-architecture.js';
import data from './presets.json' with { type: 'json' };

/** Dimensions of a published model, as its config.json states them; `hub_id` says where that file lives. */
export interface Preset {
  id: string;
  hub_id: string;
  /** Later models of the publisher with the same dimensions and storage, without the words of tuning. */
  sameShape: readonly string[];
  /** The hub wants a login and an agreement before it gives the files (as last seen; publishers change it). */
  gated: boolean;
  /** Size of its safetensors files if they hold more than the weights in the config's dtype; null: the same size. */
  download_bytes: number | null;
  config: Record<string, unknown>;
}

export const presets: readonly Preset[] = Object.entries(data).map(([id, preset]) => ({
  id,
  hub_id: preset.hub_id,
  sameShape: 'same_shape' in preset ? preset.same_shape : [],
  gated: preset.gated,
  download_bytes: 'download_bytes' in preset ? preset.download_bytes : null,
  config: preset.config,
}));

/** The preset of this id or hub id, in any case; null when there is none. */
export function findPreset(name: string): Preset | null {
  const key = name.trim().toLowerCase();
  return presets.find(({ id, hub_id }) => id === key || hub_id.toLowerCase() === key) ?? null;
}

/** Published names of one shape differ in these words: what a model was tuned for, and when. */
const tuning = /-(instruct|chat|it|base|pt|hf|think|thinking)(-\d{4})?(?=-|$)/g;

/**
 * The preset with the shape of a tuned model (Qwen2.5-7B-Instruct: qwen2.5-7b), by the names alone: same owner where one is
 * given, same words but for the tuning. Quantized copies have other names. A preset that is named by its tuning is not a
 * base: Kimi-K2-Thinking is stored otherwise than Kimi-K2.
 */
export function findBaseOf(name: string): Preset | null {
  const parts = (hubId: string): [owner: string, stem: string] => {
    const [last = '', owner = ''] = hubId.trim().toLowerCase().split('/').reverse();
    return [owner, last.replace(tuning, '')];
  };
  const [owner, stem] = parts(name);
  const found = presets.find(({ id, hub_id, sameShape }) => {
    if (parts(id)[1] !== id) return false;
    const isOf = ([publisher, published]: [string, string]) =>
      (owner === '' || owner === publisher) && stem === published;
    return [hub_id, ...sameShape].some((one) => isOf(parts(one))) || (owner === '' && stem === id);
  });
  return found ?? null;
}

/** @throws E_MODEL_NOT_FOUND naming the presets */
export function presetArchitecture(name: string): Architecture {
  const preset = findPreset(name);
  if (preset) return readArchitecture(preset.config);
  throw new InferscopeError('E_MODEL_NOT_FOUND', {
    what: `no architecture preset "${name}"`,
    why: `Presets: ${presets.map(({ id }) => id).join(', ')}.`,
    fix: "Use a preset or give the model's config.json.",
  });
}
