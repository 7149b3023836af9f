import { captureList, ofKind } from '../../facts/trace/collectives.js';
import { makeKernelStreams } from '../../facts/trace/kernel-streams.js';
import type { FindingContext } from './rule.js';
import type { StageFacts } from './stage-facts.js';

/** Times of one rank and device per mean instance of a kind of stage, ms. */
export interface RankTime extends Record<string, number | null> {
  rank: number | null;
  device: number | null;
  compute_ms: number;
  comm_ms: number;
  kernels: number;
  /** Idle time of the device before the launch calls and inside them. */
  host_ms: number;
}

export const nameOf = ({ rank, device }: Pick<RankTime, 'rank' | 'device'>): string =>
  `rank ${rank ?? '–'} on device ${device ?? '–'}`;

/** Captures of ranks that ran together: same execution, same tool. */
export function capturesOfRanks({ manifest, scope }: FindingContext): string[] {
  const { execution_id: execution, capture_id: own } = scope!.source.attribution;
  const tool = manifest.captures.find(({ capture_id }) => capture_id === own)?.importer;
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
         coalesce(sum(k.dur_ns) FILTER (k.class = 'communication'), 0) / 1e6 / ${instances} AS comm_ms, count(*) / ${instances} AS kernels
       FROM kernels k ${ofKind('k', kind)} WHERE k.capture_id IN (${captures}) GROUP BY ALL),
     idle AS (
       SELECT g.rank, g.device, sum(${inside}) / 1e6 / ${instances} AS host_ms
       FROM gaps g ${ofKind('g', kind)} WHERE g.capture_id IN (${captures}) GROUP BY ALL)
     SELECT c.*, coalesce(i.host_ms, 0) AS host_ms FROM computing c
     LEFT JOIN idle i ON i.rank IS NOT DISTINCT FROM c.rank AND i.device IS NOT DISTINCT FROM c.device ORDER BY compute_ms DESC`;
}

/** The ranks that compute in a kind of stage, the longest first; none where the session has one rank on one device. */
export async function ranksOf(context: FindingContext, stage: StageFacts): Promise<RankTime[]> {
  await makeKernelStreams(context.database);
  const [devices] = await context.database.query<{ n: number }>(
    'SELECT count(*) AS n FROM (SELECT DISTINCT rank, device FROM kernel_streams)',
  );
  return (devices?.n ?? 0) < 2 ? [] : context.database.query<RankTime>(rankTimesSql(context, stage));
}
