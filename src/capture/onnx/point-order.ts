import type { WorkloadPoint } from './plan.js';

/**
 * Sorts for warm-up from small to large, so that a point's additional memory shows in the process's memory: by cache (batch × context)
 * first, then by the prompt's activations.
 */
export function bySize<P extends Pick<WorkloadPoint, 'batchSize' | 'inputLen' | 'outputLen'>>(
  points: readonly P[],
): P[] {
  const context = (p: P) => p.batchSize * (p.inputLen + p.outputLen);
  const prompt = (p: P) => p.batchSize * p.inputLen;
  return [...points].sort((x, y) => context(x) - context(y) || prompt(x) - prompt(y));
}

/**
 * Order of the timed repeats: rounds over the remaining points, each round starting one point later, so that every point
 * takes every position and drift of the machine affects all equally.
 * @param from rotation of the first round, e.g. the launch
 */
export function* interleaved<P extends Pick<WorkloadPoint, 'repeats'>>(
  points: readonly P[],
  from: number,
): Generator<P> {
  const rounds = Math.max(0, ...points.map(({ repeats }) => repeats));
  for (let round = 0; round < rounds; round++) {
    const remaining = points.filter(({ repeats }) => repeats > round);
    for (let i = 0; i < remaining.length; i++) yield remaining[(i + round + from) % remaining.length]!;
  }
}
