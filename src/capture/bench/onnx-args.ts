import { closest } from 'fastest-levenshtein';
import { maxThreads } from '../../hardware/threads.js';
import { InferscopeError } from '../../model/errors.js';

/** Engine arguments of the embedded engine (--engine-arg). */
export interface OnnxArgs {
  /** Overrides --threads, so that it can be swept. */
  threads?: number;
  graphOptimization?: 'disabled' | 'basic' | 'extended' | 'all';
  computeInt4?: 'int8' | 'float32';
}

const graphLevels = ['disabled', 'basic', 'extended', 'all'] as const;
const computeTypes = ['int8', 'float32'] as const;

const knownArgs = ['threads', 'graph_optimization', 'compute_int4'];

/** @throws E_USAGE for an unknown key or value */
export function parseOnnxArgs(args: Record<string, string>): OnnxArgs {
  const parsed: OnnxArgs = {};
  for (const [key, value] of Object.entries(args)) {
    if (key === 'threads') {
      const threads = Number(value);
      if (!Number.isSafeInteger(threads) || threads < 1 || threads > maxThreads())
        throw badValue(key, value, `a whole number from 1 to ${maxThreads()}, four per core`);
      parsed.threads = threads;
    } else if (key === 'graph_optimization') {
      parsed.graphOptimization = oneOf(key, value, graphLevels);
    } else if (key === 'compute_int4') {
      parsed.computeInt4 = oneOf(key, value, computeTypes);
    } else {
      throw new InferscopeError('E_USAGE', {
        what: `the embedded engine has no argument ${key}`,
        why: `Known arguments: ${knownArgs.join(', ')}.`,
        fix: `Example: --engine-arg ${closest(key, knownArgs)}=${{ threads: '1,2', graph_optimization: 'basic,all' }[closest(key, knownArgs)] ?? 'int8'}`,
      });
    }
  }
  return parsed;
}

function oneOf<T extends string>(key: string, value: string, allowed: readonly T[]): T {
  const found = allowed.find((allowedValue) => allowedValue === value);
  if (found === undefined) throw badValue(key, value, `one of ${allowed.join(', ')}`);
  return found;
}

function badValue(key: string, value: string, expected: string): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: `--engine-arg ${key}=${value} is invalid`,
    why: `${key} is ${expected}.`,
    fix: 'inferscope bench latency --help shows the syntax of engine arguments.',
  });
}
