import type { LoadShape } from './load-shape.js';
import type { Random } from '../model/random.js';

/** Length of a load: a number of requests or seconds, whichever is reached first. */
interface LoadExtent {
  requests: number;
  seconds: number;
}

/**
 * Due times of an open loop, seconds from its start, ascending. The first arrival of a constant rate is at 0. A ramp
 * from a to b over T seconds has a cumulative count N(t) = a t + (b − a) t² / 2T; arrivals are at N(t) = 0, 1, …
 * @returns null for a closed loop, which has no due times
 */
export function arrivals(shape: LoadShape, extent: LoadExtent, random: Random): number[] | null {
  switch (shape.kind) {
    case 'closed':
      return null;
    case 'constant':
      return arrivalsUntilEnd(extent, (index) => index / shape.rate_per_s);
    case 'poisson': {
      let timeS = 0;
      return arrivalsUntilEnd(extent, () => (timeS += -Math.log(1 - random()) / shape.rate_per_s));
    }
    case 'ramp': {
      const { from_per_s: from, to_per_s: to } = shape;
      const seconds = Number.isFinite(extent.seconds) ? extent.seconds : (2 * extent.requests) / (from + to);
      const slope = (to - from) / seconds;
      const arrivalOf = (count: number) =>
        slope === 0 ? count / from : (Math.sqrt(Math.max(0, from ** 2 + 2 * slope * count)) - from) / slope;
      const total = Math.min(extent.requests, Math.ceil(((from + to) / 2) * seconds));
      return Array.from({ length: total }, (_, index) => arrivalOf(index));
    }
    case 'trace': {
      const first = shape.arrivals_s[0] ?? 0;
      return shape.arrivals_s
        .slice(0, Number.isFinite(extent.requests) ? extent.requests : undefined)
        .map((timeS) => timeS - first)
        .filter((timeS) => timeS < extent.seconds);
    }
  }
}

function arrivalsUntilEnd({ requests, seconds }: LoadExtent, arrivalOf: (index: number) => number): number[] {
  const times: number[] = [];
  for (let index = 0; index < requests; index++) {
    const time = arrivalOf(index);
    if (time >= seconds) break;
    times.push(time);
  }
  return times;
}
