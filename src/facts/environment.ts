import type { ManifestData } from '../model/manifest.js';

/** One fact about machine or software: `id` is its name in the manifest, `label` the same in words. */
interface EnvironmentFact {
  id: string;
  label: string;
  value: string;
}

/** What the manifest records about machine and software; facts without a value are left out. */
export function environmentFacts({ hardware, software }: ManifestData): EnvironmentFact[] {
  return Object.entries({ ...hardware, ...software })
    .filter(([, value]) => value !== null)
    .map(([id, value]) => ({ id, label: id.replaceAll('_', ' '), value: String(value) }));
}
