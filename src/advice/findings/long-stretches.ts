import { bareKernelName } from '../../model/kernel-name.js';
import { longHostNs } from './finding-tables.js';
import type { FindingContext } from './rule.js';
import type { StageFacts } from './stage-facts.js';
import { perInstance } from '../../vocabulary/stages.js';
import { ms, times } from './words.js';
import { cutEnd } from '../../vocabulary/cut.js';

/** A place in the program where the device waits long; values per mean instance. */
export type HostStretch = {
  /** Null before a kernel. */
  place: string | null;
  /** The kernel before which the device waits. */
  kernel: string | null;
  /** Inside an operator, within a user range, or before the next operator or kernel. */
  relation: 'inside' | 'within' | 'before';
  per_instance: number;
  ms: number;
};

/** Host gaps of more than `minNs` without launches or waits, longest place first. */
export async function longStretches(
  context: FindingContext,
  { kind, instances }: StageFacts,
  minNs = longHostNs,
) {
  const { rows, evidence } = await context.evidence<HostStretch>(
    stretchesSql(kind, instances, minNs),
    (evidenceRows) =>
      evidenceRows
        .slice(0, 3)
        .map(
          (row) => `${placeWords(row)}: ${ms(row.ms)} ${perInstance(kind)}, ${times(row.per_instance, kind)}`,
        )
        .join('; '),
  );
  return { places: rows, evidence };
}

export const placeWords = ({ relation, place, kernel }: HostStretch): string =>
  relation === 'within' ? `within the range ${place}` : `${relation} ${kernel ?? shortenName(place!)}`;

/** Without parameters, in at most 60 letters. */
function shortenName(name: string): string {
  const bareName = bareKernelName(name);
  return cutEnd(bareName, 60);
}

/** A copy in a sentence: "an H2D copy", "a memset". */
const copyWords = `CASE WHEN kind = 'memset' THEN 'a memset' ELSE CASE WHEN kind LIKE 'H%' THEN 'an ' ELSE 'a ' END || replace(kind, 'to', '2') || ' copy' END`;

/** Numbers in range names are step and layer indices: remove them, so that equal places group together. */
const withoutNumbersSql = (name: string) => `regexp_replace(${name}, '\\d+', '#', 'g')`;

function stretchesSql(kind: string, instances: number, minNs: number): string {
  // A gap may start before its step, or lie in the window of the previous step: the part within a window counts for that step.
  const from = kind === 'outside' ? 'h_start' : 'greatest(h_start, w.start_ns)';
  const to = kind === 'outside' ? 'h_end' : 'least(h_end, w.end_ns)';
  const step =
    kind === 'outside'
      ? ''
      : ` JOIN windows w ON w.kind = '${kind}' AND h_start < w.end_ns AND h_end > w.start_ns`;
  return `WITH stretch AS (
       SELECT g.start_ns, next_ns, tid, before_op_id, ${to} - ${from} AS host_ns, (${from} + ${to}) / 2 AS middle_ns
       FROM (SELECT *, start_ns + dur_ns AS next_ns, start_ns + coalesce(synchronization_ns, 0) AS h_start, start_ns + coalesce(synchronization_ns, 0) + host_ns AS h_end
         FROM phase_gaps WHERE host_ns > ${minNs}) g${step}
       WHERE ${to} - ${from} > ${minNs}),
     around AS (
       SELECT g.start_ns, arg_max(r.raw_name, r.start_ns) AS range_name
       FROM stretch g JOIN (SELECT raw_name, start_ns, end_ns, tid FROM phase_stages WHERE kind = 'other' AND raw_name IS NOT NULL) r
         ON r.start_ns <= g.middle_ns AND r.end_ns > g.middle_ns WHERE coalesce(r.tid = g.tid, true) GROUP BY g.start_ns),
     placed AS (
       SELECT g.host_ns, CASE WHEN o.begin_ns < g.middle_ns THEN 'inside' WHEN a.range_name IS NOT NULL THEN 'within' ELSE 'before' END AS relation,
         o.name AS operator, k.kernel, k.copy, ${withoutNumbersSql('a.range_name')} AS range_name
       FROM stretch g LEFT JOIN (SELECT op_id, name, start_ns AS begin_ns FROM rank_ops) o ON o.op_id = g.before_op_id
       LEFT JOIN around a ON a.start_ns = g.start_ns
       LEFT JOIN (SELECT start_ns, any_value(name) AS kernel, any_value(copy) AS copy FROM (SELECT start_ns, coalesce(name, short_name) AS name, NULL AS copy FROM rank_kernels UNION ALL SELECT start_ns, NULL, ${copyWords} FROM rank_copies) e
         SEMI JOIN stretch ON e.start_ns = stretch.next_ns GROUP BY start_ns) k ON k.start_ns = g.next_ns)
     SELECT CASE WHEN relation = 'within' THEN range_name WHEN operator IS NULL AND kernel IS NULL THEN coalesce(copy, 'the next launch') ELSE operator END AS place,
       CASE WHEN relation = 'before' AND operator IS NULL THEN kernel END AS kernel, relation,
       round(count(*) / ${instances}, 4) AS per_instance, round(sum(host_ns) / 1e6 / ${instances}, 4) AS ms, round(max(host_ns) / 1e6, 3) AS longest_ms
     FROM placed GROUP BY ALL ORDER BY ms DESC, place, kernel`;
}
