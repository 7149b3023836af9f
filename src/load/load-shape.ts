/** When requests are sent. Rates are requests per second, times are seconds. */
export type LoadShape =
  /** `concurrency` users, each sending its next request when the last answer is complete. */
  | { kind: 'closed'; concurrency: number; ramp_s: number }
  /** Evenly spaced arrivals, independent of the server. */
  | { kind: 'constant'; rate_per_s: number }
  /** Independent arrivals: exponential gaps. */
  | { kind: 'poisson'; rate_per_s: number }
  /** Evenly spaced arrivals with a rate that rises (or falls) linearly over the run. */
  | { kind: 'ramp'; from_per_s: number; to_per_s: number }
  /** Arrivals of a recorded trace. */
  | { kind: 'trace'; arrivals_s: readonly number[] };

/** A request before it is sent. */
export interface PlannedRequest {
  index: number;
  prompt: string;
  /** Tokens of the prompt if a tokenizer made it exact; null if it was made of words. */
  input_tokens: number | null;
  /** max_tokens. */
  output_tokens: number;
  /** Excluded from the statistics. */
  warmup: boolean;
  /** Open loop: due time, ns from the start of the point. Null in a closed loop, which sends when a user is free. */
  due_ns: number | null;
}

/** Users of a closed loop, or the mean rate of an open one: the order of a sweep. */
export function loadLevel(shape: LoadShape): number {
  switch (shape.kind) {
    case 'closed':
      return shape.concurrency;
    case 'ramp':
      return (shape.from_per_s + shape.to_per_s) / 2;
    case 'trace': {
      const span = (shape.arrivals_s.at(-1) ?? 0) - (shape.arrivals_s[0] ?? 0);
      return span > 0 ? (shape.arrivals_s.length - 1) / span : shape.arrivals_s.length;
    }
    default:
      return shape.rate_per_s;
  }
}

/** Requests per second: the mean of an open loop, null for a closed one, and both ends of a ramp. */
export const ratesOf = (shape: LoadShape) => ({
  rate_per_s: shape.kind === 'closed' ? null : loadLevel(shape),
  ...(shape.kind === 'ramp' && { from_per_s: shape.from_per_s, to_per_s: shape.to_per_s }),
});
