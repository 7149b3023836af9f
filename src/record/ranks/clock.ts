import { median } from '../../model/statistics.js';
import type { Workbench } from '../../model/workbench.js';

/** Relation of a rank's clock to the reference: corrected time = t − (a_ns + b × t). */
export interface RankClock {
  rank: number;
  /**
   * The rank it was compared with; itself for the reference. Null: it shares too few collectives with any aligned rank, or they do not
   * overlap.
   */
  against: number | null;
  a_ns: number;
  b: number;
  /** Offset in the middle of its collectives, ns; its tables are shifted by it. */
  offset_ns: number;
  /** Error of a corrected time, ns; null if the clock is not aligned but the host's own. */
  bound_ns: number | null;
  collectives: number;
}

/** Minimum collectives shared by two ranks to estimate an offset. */
const minShared = 3;
/** Number of medians for the line fit, so that single late ends do not shift it. */
const bins = 16;
/** Minimum share of a pair's collectives that overlap after alignment; below it they are not the same calls. */
const minOverlap = 0.9;

/**
 * Aligns the clocks of ranks by the ends of the collectives in table `rank_calls` (rank, communicator, operation, sequence, start_ns,
 * end_ns), since all ranks leave a collective together. The lowest rank is the reference; each rank is compared with the aligned rank that
 * shares most collectives with it. Groups without a shared collective stay on their hosts' clock. Error bound: the 95th percentile of the
 * remaining differences between ends plus the shortest exchange, which is the time of the last rank, since a constant difference up to that cannot be distinguished from an
 * offset (data moves while all ranks are inside). Bounds add up along a chain of comparisons.
 * @param stride every stride-th call is compared, the same ones on all ranks
 */
export async function alignClocks(
  workbench: Workbench,
  ranks: readonly number[],
  stride: number,
): Promise<RankClock[]> {
  await workbench.run(
    `CREATE TABLE rank_ends AS SELECT *, min(end_ns - start_ns) OVER (PARTITION BY communicator, operation, sequence) AS exchange_ns FROM (
       SELECT rank, communicator, operation, sequence, any_value(start_ns) AS start_ns, any_value(end_ns) AS end_ns
       FROM rank_calls WHERE operation NOT IN ('Send', 'Recv', 'Broadcast', 'Reduce') AND sequence % ${stride} = 0 GROUP BY ALL HAVING count(*) = 1)`,
  );
  const aligned = new Map<number, RankClock>();
  const [reference] = ranks;
  if (reference === undefined) return [];
  aligned.set(reference, { ...unaligned(reference), against: reference, bound_ns: 0 });
  for (;;) {
    const remaining = ranks.filter((rank) => !aligned.has(rank));
    if (remaining.length === 0) break;
    const pairs = await closestPairs(workbench, [...aligned.keys()], remaining);
    if (pairs.length === 0) break;
    for (const clock of await fitClock(workbench, pairs, aligned)) aligned.set(clock.rank, clock);
    const unmatched = pairs.filter(({ rank }) => !aligned.has(rank));
    for (const { rank } of unmatched) aligned.set(rank, unaligned(rank));
  }
  await workbench.run('DROP TABLE rank_ends');
  return ranks.map((rank) => aligned.get(rank) ?? unaligned(rank));
}

const unaligned = (rank: number): RankClock => ({
  rank,
  against: null,
  a_ns: 0,
  b: 0,
  offset_ns: 0,
  bound_ns: null,
  collectives: 0,
});

interface Pair {
  rank: number;
  against: number;
}

const joinShared = 'JOIN rank_ends q USING (communicator, operation, sequence)';

/** For each remaining rank, the aligned rank that shares most collectives with it. */
function closestPairs(
  workbench: Workbench,
  alignedRanks: readonly number[],
  remaining: readonly number[],
): Promise<Pair[]> {
  return workbench.query<Pair>(
    `SELECT r.rank, q.rank AS against FROM rank_ends r ${joinShared}
     WHERE r.rank IN (${remaining.join(', ')}) AND q.rank IN (${alignedRanks.join(', ')})
     GROUP BY r.rank, q.rank HAVING count(*) >= ${minShared}
     QUALIFY row_number() OVER (PARTITION BY r.rank ORDER BY count(*) DESC, q.rank) = 1`,
  );
}

async function fitClock(
  workbench: Workbench,
  pairs: readonly Pair[],
  aligned: ReadonlyMap<number, RankClock>,
): Promise<RankClock[]> {
  const alignedSql = pairs.map(({ rank, against }) => {
    const { a_ns: a, b } = aligned.get(against)!;
    return `(${rank}, ${against}, ${a}, ${b})`;
  });
  await workbench.run(
    `CREATE OR REPLACE TABLE rank_pairs AS
     SELECT r.rank, r.end_ns AS x, r.end_ns - (q.end_ns - (a + b * q.end_ns)) AS d, r.start_ns AS start_ns, r.exchange_ns,
       q.start_ns - (a + b * q.start_ns) AS other_start_ns, q.end_ns - (a + b * q.end_ns) AS other_end_ns
     FROM (VALUES ${alignedSql.join(', ')}) p(rank, against, a, b) JOIN rank_ends r ON r.rank = p.rank ${joinShared} WHERE q.rank = p.against`,
  );
  const points = await workbench.query<{ rank: number; n: number; x: number; d: number }>(
    `SELECT rank, count(*) AS n, median(x) AS x, median(d) AS d
     FROM (SELECT *, ntile(${bins}) OVER (PARTITION BY rank ORDER BY x) AS bin FROM rank_pairs) GROUP BY rank, bin ORDER BY rank, x`,
  );
  const lines = pairs.map(({ rank }) => {
    const rankPoints = points.filter((point) => point.rank === rank);
    const middle = median(rankPoints.map(({ x }) => x));
    const b = rankPoints.length < bins ? 0 : slopeOf(rankPoints);
    return {
      rank,
      middle,
      b,
      a: median(rankPoints.map(({ x, d }) => d - b * x)),
      flat: median(rankPoints.map(({ d }) => d)),
    };
  });
  const line = (textOf: (fit: (typeof lines)[number]) => string) =>
    `(VALUES ${lines.map((fit) => `(${fit.rank}, ${textOf(fit)})`).join(', ')})`;
  const fitErrors = await workbench.query<{
    rank: number;
    n: number;
    residual: number;
    flat: number;
    overlap: number;
    wire: number;
    span: number;
  }>(
    `SELECT rank, count(*) AS n, quantile_cont(abs(d - a - b * x), 0.95) AS residual, quantile_cont(abs(d - flat), 0.95) AS flat,
       avg(CASE WHEN start_ns - a - b * start_ns <= other_end_ns AND other_start_ns <= x - a - b * x THEN 1 ELSE 0 END) AS overlap,
       min(exchange_ns) AS wire, max(x) - min(x) AS span
     FROM rank_pairs JOIN ${line(({ a, b, flat }) => `${a}, ${b}, ${flat}`)} l(rank, a, b, flat) USING (rank) GROUP BY rank`,
  );
  await workbench.run('DROP TABLE rank_pairs');
  return lines.flatMap(({ rank, middle, a, b, flat }) => {
    const fit = fitErrors.find((candidate) => candidate.rank === rank);
    const { against } = pairs.find((pair) => pair.rank === rank)!;
    if (!fit || fit.overlap < minOverlap) return [];
    // A drift smaller than the residual is not reported.
    const hasDrift = Math.abs(b) * fit.span > fit.residual;
    const bound = (hasDrift ? fit.residual : fit.flat) + fit.wire + (aligned.get(against)!.bound_ns ?? 0);
    return [
      {
        rank,
        against,
        a_ns: hasDrift ? a : flat,
        b: hasDrift ? b : 0,
        offset_ns: Math.round(hasDrift ? a + b * middle : flat),
        bound_ns: Math.ceil(bound),
        collectives: fit.n,
      },
    ];
  });
}

/** Theil-Sen estimator: the median slope over all pairs of points. */
function slopeOf(points: readonly { x: number; d: number }[]): number {
  const slopes = points.flatMap((earlier, index) =>
    points
      .slice(index + 1)
      .flatMap((later) => (later.x > earlier.x ? [(later.d - earlier.d) / (later.x - earlier.x)] : [])),
  );
  return slopes.length === 0 ? 0 : median(slopes);
}
