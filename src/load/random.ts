/** Uniform draws in [0, 1). */
export type Random = () => number;

/**
 * mulberry32 (T. Ettinger, public domain): 32 bits of state, enough for prompts and arrivals, equal on every machine.
 */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A seed for one part of a run (prompts, arrivals of point 3, …), so that parts do not share draws. */
export function partSeed(seed: number, part: string): number {
  // FNV-1a over the name, starting from the seed.
  let hash = (2166136261 ^ Math.imul(seed, 2654435761)) >>> 0;
  for (let i = 0; i < part.length; i++) hash = Math.imul(hash ^ part.charCodeAt(i), 16777619) >>> 0;
  return hash;
}
