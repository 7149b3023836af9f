import { InferscopeError } from '../model/errors.js';
import type { Architecture } from './architecture.js';
import { readArchitecture } from './read-architecture.js';
import data from './presets.json' with { type: 'json' };

/** Dimensions of a published model from its config.json; `hub_id` is its name on the hub. */
export interface Preset {
  id: string;
  hub_id: string;
  /** Later models of the publisher with the same dimensions and storage, without tuning words. */
  sameShape: readonly string[];
  /** The hub requires a login and an agreement for the files (as last checked; publishers change it). */
  gated: boolean;
  /** Size of its safetensors files if they contain more than the weights in the config's dtype; null: the same size. */
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

/** The preset with this id or hub id, in any case; null if there is none. */
export function findPreset(name: string): Preset | null {
  const key = name.trim().toLowerCase();
  return presets.find(({ id, hub_id }) => id === key || hub_id.toLowerCase() === key) ?? null;
}

/** Words in published names that do not change the shape: tuning and date. */
const tuning = /-(instruct|chat|it|base|pt|hf|think|thinking)(-\d{4})?(?=-|$)/g;

/**
 * The preset with the shape of a tuned model (Qwen2.5-7B-Instruct: qwen2.5-7b), by name only: same owner if given, same
 * words without the tuning. Quantized copies have other names. A preset named by its tuning is not a base:
 * Kimi-K2-Thinking is stored differently from Kimi-K2.
 */
export function findBaseOf(name: string): Preset | null {
  const parts = (hubId: string): [owner: string, stem: string] => {
    const [last = '', owner = ''] = hubId.trim().toLowerCase().split('/').reverse();
    return [owner, last.replace(tuning, '')];
  };
  const [owner, stem] = parts(name);
  const preset = presets.find(({ id, hub_id, sameShape }) => {
    if (parts(id)[1] !== id) return false;
    const isOf = ([publisher, published]: [string, string]) =>
      (owner === '' || owner === publisher) && stem === published;
    return (
      [hub_id, ...sameShape].some((candidate) => isOf(parts(candidate))) || (owner === '' && stem === id)
    );
  });
  return preset ?? null;
}

/** @throws E_MODEL_NOT_FOUND with the known presets */
export function presetArchitecture(name: string): Architecture {
  const preset = findPreset(name);
  if (preset) return readArchitecture(preset.config);
  throw new InferscopeError('E_MODEL_NOT_FOUND', {
    what: `no architecture preset "${name}"`,
    why: `Presets: ${presets.map(({ id }) => id).join(', ')}.`,
    fix: "Use a preset or give the model's config.json.",
  });
}
