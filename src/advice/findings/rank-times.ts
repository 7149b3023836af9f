import { lowerMedian } from '../../model/statistics.js';
import { captureList, joinPhases } from '../../facts/trace/collectives.js';
import { makeKernelStreams } from '../../facts/trace/kernel-streams.js';
import type { FindingContext } from './rule.js';
import type { StageFacts } from './stage-facts.js';
import { blocksSql } from './step-sequence.js';

/** Times of one rank and device per mean instance of a kind of stage, ms. */
export interface RankTime extends Record<string, number | null> {
  rank: number | null;
  device: number | null;
  compute_ms: number;
  comm_ms: number;
  kernels: number;
  /** Thread blocks of its launches; null if grids are not recorded. */
  blocks: number | null;
  /** Idle time of the device before the launch calls and inside them. */
  host_ms: number;
}

/** Captures of ranks that ran together: same execution, same tool. */
export function capturesOfRanks({ manifest, scope }: FindingContext): string[] {
  const { execution_id: execution, capture_id: captureId } = scope!.source.attribution;
  const tool = manifest.captures.find(({ capture_id }) => capture_id === captureId)?.importer;
  return manifest.captures
    .filter((capture) => capture.execution_id === execution && capture.importer === tool)
    .map(({ capture_id }) => capture_id);
}

/** SQL of RankTime for each rank of the same execution and tool, longest compute time first. */
export function rankTimesSql(context: FindingContext, { kind, instances }: StageFacts): string {
  const captures = captureList(capturesOfRanks(context));
  const idle = 'coalesce(g.host_ns, 0) + coalesce(g.launch_overhead_ns, 0)';
  // Before a prefill the device may be idle for lack of work; steps follow one another.
  const inside =
    kind === 'prefill'
      ? `greatest(0, least(${idle}, g.start_ns + coalesce(g.synchronization_ns, 0) + ${idle} - p.start_ns))`
      : idle;
  return `WITH computing AS (
       SELECT k.rank, k.device, sum(k.exclusive_ns) FILTER (k.class <> 'communication') / 1e6 / ${instances} AS compute_ms,
         coalesce(sum(k.dur_ns) FILTER (k.class = 'communication'), 0) / 1e6 / ${instances} AS comm_ms, count(*) / ${instances} AS kernels,
         sum(${blocksSql}) FILTER (k.class <> 'communication') / ${instances} AS blocks
       FROM kernels k ${joinPhases('k', kind)} WHERE k.capture_id IN (${captures}) GROUP BY ALL),
     idle AS (
       SELECT g.rank, g.device, sum(${inside}) / 1e6 / ${instances} AS host_ms
       FROM gaps g ${joinPhases('g', kind)} WHERE g.capture_id IN (${captures}) GROUP BY ALL)
     SELECT c.*, coalesce(i.host_ms, 0) AS host_ms FROM computing c
     LEFT JOIN idle i ON i.rank IS NOT DISTINCT FROM c.rank AND i.device IS NOT DISTINCT FROM c.device ORDER BY compute_ms DESC`;
}

/** Ranks with kernels in a kind of stage, the longest first; empty for a session with one rank on one device. */
export async function ranksOf(context: FindingContext, stage: StageFacts): Promise<RankTime[]> {
  await makeKernelStreams(context.database);
  const [devices] = await context.database.query<{ n: number }>(
    'SELECT count(*) AS n FROM (SELECT DISTINCT rank, device FROM kernel_streams)',
  );
  return (devices?.n ?? 0) < 2 ? [] : context.database.query<RankTime>(rankTimesSql(context, stage));
}

/** The rank with the longest time of its own work, and the waiting that its excess causes, ms per mean instance. */
export interface SlowRank {
  time: RankTime;
  /** Whether it launches more thread blocks than the others; if not, the same work takes longer. */
  hasMoreWork: boolean;
  /** Possible savings: compute kernel time, and waiting for its host. */
  computeMs: number;
  hostMs: number;
  /** Both together, lower and upper bound. */
  minGainMs: number;
  maxGainMs: number;
}

/** A rank has more work if it launches at least this many times the thread blocks of the others. */
const minMoreWork = 1.1;

/** Null if ranks do not communicate: they are replicas with different loads, and none waits for another. */
export function slowRank(ranks: readonly RankTime[]): SlowRank | null {
  if (ranks.length < 2 || ranks.some(({ comm_ms }) => comm_ms === 0)) return null;
  const withoutWaitMs = ({ compute_ms, host_ms }: RankTime) => compute_ms + host_ms;
  const [slow, ...otherRanks] = ranks.toSorted((a, b) => withoutWaitMs(b) - withoutWaitMs(a)) as [
    RankTime,
    ...RankTime[],
  ];
  const excess = (msOf: (rank: RankTime) => number) =>
    Math.max(0, msOf(slow) - lowerMedian(otherRanks.map(msOf)));
  const blocks = lowerMedian(otherRanks.map((time) => time.blocks ?? 0));
  const hasMoreWork = blocks > 0 && (slow.blocks ?? 0) >= minMoreWork * blocks;
  const compute = excess(({ compute_ms }) => compute_ms);
  // Work moved to the others takes time there, so all ranks take the mean.
  const mean = ranks.reduce((sum, { compute_ms }) => sum + compute_ms, 0) / ranks.length;
  const evenMs = Math.min(compute, Math.max(0, slow.compute_ms - mean));
  const computeMs = hasMoreWork ? evenMs : compute;
  const hostMs = excess(({ host_ms }) => host_ms);
  // If this rank becomes as fast as the others, the next slowest one sets the pace.
  const next = withoutWaitMs(slow) - withoutWaitMs(otherRanks[0]!);
  return {
    time: slow,
    hasMoreWork,
    computeMs,
    hostMs,
    minGainMs: hasMoreWork ? 0.5 * (computeMs + hostMs) : Math.min(next, evenMs + hostMs),
    maxGainMs: compute + hostMs,
  };
}
