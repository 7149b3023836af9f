import { byNumber, makeCollectives } from '../../../facts/trace/collective-tables.js';
import type { FoundDraft, Rule } from '../rule.js';
import { checkAgain } from '../stage-rule.js';
import { ms, part, percent } from '../words.js';
import { formatBytes } from '../../../vocabulary/format.js';

/** Minimum operations of a communicator that all ranks recorded. */
const minOperations = 20;
/** With two equal ranks, each is last in half of the operations: by chance, 18 of 20 has a probability of 2 in 10 000. */
const minLast = 0.9;
/** Minimum saving by an earlier arrival, as a share of the operations' time. */
const minShare = 0.05;

interface LateRank extends Record<string, string | number | null> {
  communicator: string;
  operation: string;
  bytes: number;
  ranks: number;
  rank: number;
  host: string | null;
  last: number;
  operations: number;
  time_ms: number;
  saved_ms: number;
}

/**
 * In the logs of NCCL Inspector the same rank arrives last in almost all operations. All ranks leave together, so the last one has the
 * shortest time. If it arrived with the second-to-last rank, each operation would be shorter by the difference of the two
 * shortest times. The logs have no step times, so no gain per step is claimed.
 */
export const collectiveLateRank: Rule = {
  id: 'collective_late_rank',
  noise: true,
  title: 'Rank arrives last in collectives',
  docs: {
    finds: 'One rank almost always enters collectives last, so the others wait for it.',
    needs: 'logs of NCCL Inspector of all ranks',
    gain: 'Affected: for each operation the difference of the two shortest times. No gain per step is claimed, because these logs have no step times.',
    change: 'Find out what that rank does before the collective: more work, lower clocks, a shared CPU.',
    withheld:
      'fewer than 20 operations of one size, last in less than 90 % of them, or less than 5 % of their time saved',
  },
  references: [
    {
      title: 'NCCL Inspector',
      url: 'https://github.com/NVIDIA/nccl/tree/master/plugins/profiler/inspector',
    },
  ],
  async find(context) {
    if (!context.has('collectives'))
      return { outcome: 'not_applicable', why: 'NCCL Inspector recorded no collectives.' };
    const [source] = await context.database.query<{ logged: boolean }>(
      'SELECT EXISTS (SELECT 1 FROM collectives WHERE device IS NULL) AS logged',
    );
    if (!source!.logged)
      return {
        outcome: 'not_applicable',
        why: 'The collectives were recorded in timelines, which rank_stragglers and exposed_communication judge per step.',
      };
    await makeCollectives(context.database);
    const { rows, evidence } = await context.evidence<LateRank>(lateRanksSql, (all) =>
      all
        .slice(0, 3)
        .map(
          (row) =>
            `${row.operation} of ${formatBytes(row.bytes)}: rank ${row.rank} last in ${row.last} of ${row.operations}`,
        )
        .join('; '),
    );
    const enough = rows.filter(({ operations }) => operations >= minOperations);
    const [latest] = enough;
    if (!latest) {
      const complete = rows.reduce((sum, { operations }) => Math.max(sum, operations), 0);
      return {
        outcome: 'not_applicable',
        why: `At most ${complete} operations of one size were recorded on all ranks by the GPU clock; ${minOperations} are needed.`,
      };
    }
    const late = enough.find(
      ({ last, operations, saved_ms, time_ms }) =>
        last >= minLast * operations && saved_ms >= minShare * time_ms,
    );
    return late
      ? { outcome: 'fired', findings: [{ ...finding(late), evidence: [evidence] }] }
      : {
          outcome: 'not_fired',
          why: `Rank ${latest.rank} is last in ${percent(latest.last / latest.operations)} of ${latest.operations} ${latest.operation}s and would save ${part(latest.saved_ms, latest.time_ms)} of their time.`,
        };
  },
};

/** For each communicator, operation and size the rank that is last most often; largest saving first. */
const lateRanksSql = `WITH sums AS (
     SELECT execution_id, communicator, operation, bytes, any_value(ranks) AS ranks, count(*) AS operations, sum(longest_ns) / 1e6 AS time_ms
     FROM collective_calls GROUP BY ALL),
   late AS (
     SELECT execution_id, communicator, operation, bytes, last_rank AS rank, any_value(last_host) AS host, count(*) AS last, sum(second_ns - shortest_ns) / 1e6 AS saved_ms
     FROM collective_calls WHERE last_rank IS NOT NULL GROUP BY ALL)
   SELECT communicator, operation, bytes, ranks, rank, host, last, operations, time_ms, saved_ms
   FROM sums JOIN late USING (execution_id, communicator, operation, bytes)
   QUALIFY row_number() OVER (PARTITION BY execution_id, communicator, operation, bytes ORDER BY last DESC, rank) = 1
   ORDER BY saved_ms DESC, ${byNumber('communicator')}, operation, bytes`;

function finding(late: LateRank): Omit<FoundDraft, 'evidence'> {
  const { operation, rank, host, last, operations, saved_ms, time_ms, ranks } = late;
  const perOperationMs = saved_ms / last;
  return {
    stage: null,
    title: `Rank ${rank} arrives last in ${percent(last / operations)} of ${operation}s; ${ranks - 1} ranks wait ${ms(perOperationMs)} or longer for it`,
    cause: `In ${last} of ${operations} ${operation}s that all ${ranks} ranks recorded, rank ${rank}${host === null ? '' : ` (${host})`} has the shortest time: it entered last, and the others waited inside the collective.`,
    change: {
      kind: 'config',
      text: 'Find out what that rank does before the collective: more work (experts, sequences, pipeline stage), a GPU with lower clocks, or a CPU that is shared with another process.',
      example: 'inferscope run --evaluator nsys -- <command>, one report per rank',
    },
    at_stake_ms: perOperationMs,
    run_ms: saved_ms,
    share: saved_ms / time_ms,
    gain: null,
    confidence: 'medium',
    bars: [],
    check: checkAgain,
  };
}
