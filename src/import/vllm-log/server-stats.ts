import type { LogLine } from './lines.js';
import { processAt } from './process.js';

/** Statistics that a running server logs every ten seconds, under the names of the load generator's sampler. */
export interface ServerStats {
  /** server, or server1 … of further data-parallel engines. */
  scope: string;
  values: [metric: string, value: number][];
}

const patterns: [metric: string, pattern: RegExp, factor: number][] = [
  ['prompt_tokens_per_s', /Avg prompt throughput: ([\d.]+) tokens\/s/, 1],
  ['generation_tokens_per_s', /Avg generation throughput: ([\d.]+) tokens\/s/, 1],
  ['requests_running', /Running: (\d+) reqs/, 1],
  // V0 called them pending.
  ['requests_waiting', /(?:Waiting|Pending): (\d+) reqs/, 1],
  ['requests_swapped', /Swapped: (\d+) reqs/, 1],
  ['kv_cache_usage_ratio', /\b[A-Z]+ KV cache usage: ([\d.]+)%/, 0.01],
  ['prefix_cache_hit_ratio', /(?:Prefix cache hit rate|GPU prefix cache hit rate): ([\d.]+)%/, 0.01],
];

/**
 * `Engine 000: Avg prompt throughput: 115.2 tokens/s, Avg generation throughput: 29.5 tokens/s, Running: 1 reqs, Waiting: 0
 * reqs, GPU KV cache usage: 2.6%, Prefix cache hit rate: 43.8%`; null for other lines.
 */
export function serverStats({ text }: LogLine): ServerStats | null {
  const index = text.indexOf('Avg prompt throughput: ');
  if (index < 0) return null;
  const values = patterns.flatMap(([metric, pattern, factor]): [string, number][] => {
    const match = pattern.exec(text);
    return match ? [[metric, Number(match[1]) * factor]] : [];
  });
  const engine = Number(/Engine (\d+):/.exec(text)?.[1] ?? processAt(text, index).data_parallel_rank);
  return { scope: engine === 0 ? 'server' : `server${engine}`, values };
}

/**
 * Seconds since the first time of a log: lines have month, day and time ("INFO 09-03 03:38:47"), and no year.
 * Lines without a time take that of the previous line.
 */
export function logClock(): (line: LogLine) => number {
  let first: number | null = null;
  let secondsSinceFirst = 0;
  let lastTime = '';
  return ({ text }) => {
    // Thousands of lines have the same second.
    if (lastTime !== '' && text.includes(lastTime)) return secondsSinceFirst;
    const match = /(?:INFO|WARNING|ERROR|DEBUG) (\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)/.exec(text);
    if (match) {
      const [month, day, hours, minutes, seconds] = match.slice(1).map(Number) as [
        number,
        number,
        number,
        number,
        number,
      ];
      lastTime = match[0];
      // A leap year, so that 02-29 exists; a log over New Year starts again in the next one.
      const timeS = Date.UTC(2024, month - 1, day, hours, minutes, seconds) / 1000;
      first ??= timeS;
      secondsSinceFirst = timeS - first < -180 * 86_400 ? timeS - first + 366 * 86_400 : timeS - first;
    }
    return secondsSinceFirst;
  };
}
