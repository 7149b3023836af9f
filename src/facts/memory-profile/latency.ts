import type { MemoryProfile } from '../../model/documents/memory-profile.js';
import { meanOf } from '../bench/point.js';
import { analyzeBench } from '../bench/bench.js';
import { InferscopeError } from '../../model/errors.js';
import type { Session } from '../../session/open.js';

/** Latency and throughput of the same run, like `bench latency`. */
export async function readLatencyStats(
  session: Session,
): Promise<{ stats: MemoryProfile['latency_stats']; why: string | null }> {
  const noStats = {
    mean_latency_ms: null,
    tokens_per_second: null,
    mean_ttft_ms: null,
    mean_tpot_ms: null,
    runs: 0,
  };
  try {
    const { data } = await analyzeBench(session);
    const point = data.variants[0]?.points[0];
    const repeats = point?.repeats ?? [];
    if (!point || repeats.length === 0)
      return { stats: noStats, why: point?.text ?? 'no timed repeat was completed' };
    const mean = meanOf(point.latency.e2e_ms).value;
    return {
      stats: {
        mean_latency_ms: mean,
        tokens_per_second: mean === null ? null : (point.batch_size * point.output_len) / (mean / 1000),
        mean_ttft_ms: meanOf(point.latency.ttft_ms).value,
        mean_tpot_ms: meanOf(point.latency.tpot_ms).value,
        runs: repeats.length,
      },
      why: null,
    };
  } catch (error) {
    if (error instanceof InferscopeError) return { stats: noStats, why: error.parts.what };
    throw error;
  }
}
