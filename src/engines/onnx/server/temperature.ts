/** Draws from softmax(logits / temperature), the same tokens for the same seed. */
export function sampler(temperature: number, seed: number): (logits: Float32Array) => number {
  let state = seed >>> 0;
  // mulberry32
  const random = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return (logits) => {
    let largest = Number.NEGATIVE_INFINITY;
    for (const logit of logits) if (logit > largest) largest = logit;
    let total = 0;
    for (const logit of logits) total += Math.exp((logit - largest) / temperature);
    let remaining = random() * total;
    for (let token = 0; token < logits.length; token++) {
      remaining -= Math.exp((logits[token]! - largest) / temperature);
      if (remaining <= 0) return token;
    }
    return logits.length - 1;
  };
}
