/** A seed for one part of a run (prompts, arrivals of point 3, …), so that parts do not share draws. */
export function partSeed(seed: number, part: string): number {
  // FNV-1a over the name, starting from the seed.
  let hash = (2166136261 ^ Math.imul(seed, 2654435761)) >>> 0;
  for (let i = 0; i < part.length; i++) hash = Math.imul(hash ^ part.charCodeAt(i), 16777619) >>> 0;
  return hash;
}
