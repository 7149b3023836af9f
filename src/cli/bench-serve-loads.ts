import { readFile } from 'node:fs/promises';
import type { LoadSize } from '../load/load-eta.js';
import { loadLevel, type LoadShape } from '../load/load-shape.js';
import { nextLevel, type SweepPoint } from '../load/sweep.js';
import { parseTraceFile, type TracedRequest } from '../load/trace-file.js';
import { InferscopeError, messageOf } from '../model/errors.js';

export interface LoadOptions {
  concurrency?: number[];
  rate?: number[];
  arrivals: 'poisson' | 'constant';
  rampRate?: { from: number; to: number };
  trace?: string;
  maxConcurrency?: number;
  sweep?: boolean;
  sweepMax: number;
  requests?: number;
  duration?: number;
  warmupRequests?: number;
  ramp: number;
}

export interface PlannedLoad {
  shape: LoadShape;
  requests: number;
  seconds: number;
  warmup: number;
  /** Users of a closed loop, or max in-flight requests of an open loop. */
  concurrency: number | null;
  traced?: TracedRequest[];
}

const defaultOpenSeconds = 30;
/** Limit for a closed loop bounded only by time: prompts are generated before the load. */
const maxRequests = 20_000;

function closedLoad(users: number, options: LoadOptions): PlannedLoad {
  const timed = options.duration !== undefined && options.requests === undefined;
  return {
    shape: { kind: 'closed', concurrency: users, ramp_s: options.ramp },
    requests: options.requests ?? (timed ? Math.min(maxRequests, users * 500) : Math.max(32, 8 * users)),
    seconds: options.duration ?? Number.POSITIVE_INFINITY,
    warmup: options.warmupRequests ?? users,
    concurrency: users,
  };
}

function openLoad(shape: LoadShape, options: LoadOptions, traced?: TracedRequest[]): PlannedLoad {
  const seconds =
    options.duration ??
    (options.requests === undefined && shape.kind !== 'trace'
      ? defaultOpenSeconds
      : Number.POSITIVE_INFINITY);
  const expected = Math.min(
    options.requests ?? Number.POSITIVE_INFINITY,
    shape.kind === 'trace' ? shape.arrivals_s.length : loadLevel(shape) * seconds,
  );
  return {
    shape,
    requests: options.requests ?? Number.POSITIVE_INFINITY,
    seconds,
    warmup: options.warmupRequests ?? Math.ceil(expected * 0.05),
    concurrency: options.maxConcurrency ?? null,
    ...(traced ? { traced } : {}),
  };
}

export interface LoadSequence {
  next: (measured: readonly SweepPoint[]) => PlannedLoad | null;
  /** Load levels known in advance; a sweep chooses its levels as it runs. */
  listed: readonly PlannedLoad[];
}

/** An open-loop load bounded by requests lasts until they have arrived. */
export function loadSize({ shape, requests, seconds, warmup }: PlannedLoad): LoadSize {
  if (shape.kind === 'closed') return { requests: requests + warmup, seconds, users: shape.concurrency };
  const arrivalS =
    shape.kind === 'trace' ? (shape.arrivals_s.at(-1) ?? 0) : (requests + warmup) / loadLevel(shape);
  return { requests, seconds: Math.min(seconds, arrivalS), users: null };
}

/**
 * The load levels to run one after another: a list, or a sweep that chooses the next level from the last result.
 * @throws E_USAGE for mutually exclusive flags, E_FORMAT_UNKNOWN for a trace
 */
export async function loadSequence(options: LoadOptions, slo: boolean): Promise<LoadSequence> {
  const loadFlags = [
    ['--concurrency', options.concurrency],
    ['--rate', options.rate],
    ['--ramp-rate', options.rampRate],
    ['--trace', options.trace],
  ].filter(([, value]) => value !== undefined);
  if (loadFlags.length > 1) {
    throw new InferscopeError('E_USAGE', {
      what: `${loadFlags.map(([flag]) => String(flag)).join(' and ')} are mutually exclusive`,
      why: 'A load test has one kind of load.',
      fix: 'Use only one of them.',
    });
  }
  const rateLoad = (rate: number) => openLoad({ kind: options.arrivals, rate_per_s: rate }, options);
  if (options.sweep) {
    if (options.trace !== undefined || options.rampRate !== undefined) {
      throw new InferscopeError('E_USAGE', {
        what: '--sweep needs users or a rate',
        why: 'A trace or a ramp has no load level to double.',
        fix: 'Use --concurrency 1 --sweep, or --rate 1 --sweep.',
      });
    }
    const users = options.rate === undefined;
    const from = options.rate?.[0] ?? options.concurrency?.[0] ?? 1;
    const next: LoadSequence['next'] = (measured) => {
      const level = nextLevel(measured, { from, max: options.sweepMax, integers: users, slo });
      if (level === null) return null;
      return users ? closedLoad(level, options) : rateLoad(level);
    };
    return { next, listed: [] };
  }
  const loads = await listedLoads(options, rateLoad);
  return {
    next: (measured) => (measured.at(-1)?.stopped ? null : (loads[measured.length] ?? null)),
    listed: loads,
  };
}

async function listedLoads(
  options: LoadOptions,
  rateLoad: (rate: number) => PlannedLoad,
): Promise<PlannedLoad[]> {
  if (options.rate) return options.rate.map(rateLoad);
  if (options.rampRate) {
    const { from, to } = options.rampRate;
    return [openLoad({ kind: 'ramp', from_per_s: from, to_per_s: to }, options)];
  }
  if (options.trace !== undefined) {
    const path = options.trace;
    const text = await readFile(path, 'utf8').catch((error: unknown) => {
      throw new InferscopeError('E_FORMAT_UNKNOWN', {
        what: `cannot read the trace ${path}`,
        why: messageOf(error),
        fix: 'Check the path.',
      });
    });
    const traced = parseTraceFile(text, path);
    return [openLoad({ kind: 'trace', arrivals_s: traced.map(({ at_s: timeS }) => timeS) }, options, traced)];
  }
  return (options.concurrency ?? [1]).map((users) => closedLoad(users, options));
}
