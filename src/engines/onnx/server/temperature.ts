import { seededRandom } from '../../../model/random.js';

/** Draws from softmax(logits / temperature), the same tokens for the same seed. */
export function sampler(temperature: number, seed: number): (logits: Float32Array) => number {
  const random = seededRandom(seed);
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
