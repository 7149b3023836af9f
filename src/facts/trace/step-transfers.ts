import { kindsSql, stepKinds } from '../../model/record.js';

/** SQL list of the kinds of steps. */
export const markedSteps = kindsSql([...stepKinds, 'training']);

const onThread = 'capture_id = s.capture_id AND t.pid = s.pid AND t.tid = s.tid';

/**
 * SQL of `stages` with the rank of a device. In a process with a rank for each device, every stage is on each rank; but if a thread that
 * launches on a device marks steps, those of threads that launch only on other devices are left out.
 */
export const stagesOnRanksSql = `WITH rank_devices AS (
     SELECT capture_id, pid, rank FROM collectives WHERE device IS NOT NULL GROUP BY capture_id, pid, rank QUALIFY count(*) OVER (PARTITION BY capture_id, pid) > 1),
   rank_threads AS (SELECT capture_id, pid, tid, rank FROM kernels SEMI JOIN rank_devices USING (capture_id, pid) WHERE tid IS NOT NULL GROUP BY ALL),
   marked_ranks AS (
     SELECT DISTINCT t.capture_id, t.rank FROM rank_threads t JOIN stages s ON t.${onThread} WHERE s.stage_id = s.phase_id AND s.kind IN ${markedSteps}),
   thread_ranks AS (SELECT capture_id, pid, tid, list(rank) AS ranks FROM rank_threads GROUP BY ALL)
   SELECT s.* REPLACE (coalesce(d.rank, s.rank) AS rank) FROM stages s LEFT JOIN rank_devices d ON d.capture_id = s.capture_id AND d.pid = s.pid
   LEFT JOIN thread_ranks t ON t.${onThread} LEFT JOIN marked_ranks m ON m.capture_id = s.capture_id AND m.rank = d.rank
   WHERE m.rank IS NULL OR t.ranks IS NULL OR list_contains(t.ranks, d.rank)`;

/**
 * SQL of the rows of `collectives` that send to or receive from one rank, each with `step_id`, the step that launched it, and whether none did, `between_steps`. A pipeline that is
 * programmed by hand sends and receives between the calls of its modules: then a send belongs to the last step of its rank that started
 * before it, and a receive to the next step, unless it is closer to the last one. Both only if the time between is at most that of the
 * step, so that no pause between two requests counts as a step.
 * @param where condition on the rows of `collectives` and `stages`
 */
export const placedTransfersSql = (where: string): string =>
  `SELECT * EXCLUDE (phase_id, is_step, last_id, last_gap_ns, last_ns, next_id, next_gap_ns, next_ns), NOT is_step AS between_steps, CASE WHEN is_step THEN phase_id
       WHEN received_bytes > 0 AND next_gap_ns <= next_ns AND (last_id IS NULL OR next_gap_ns <= last_gap_ns) THEN next_id
       WHEN last_gap_ns <= last_ns THEN last_id ELSE phase_id END AS step_id
   FROM (
     SELECT c.*, last.step_id AS last_id, c.start_ns - last.until_ns AS last_gap_ns, last.until_ns - last.from_ns AS last_ns,
       next.step_id AS next_id, next.from_ns - (c.start_ns + c.dur_ns) AS next_gap_ns, next.until_ns - next.from_ns AS next_ns
     FROM (
       SELECT c.*, s.phase_id, coalesce(p.kind IN ${markedSteps}, false) AS is_step FROM (SELECT * FROM collectives WHERE ${where} AND peer IS NOT NULL) c
       LEFT JOIN stages s ON s.capture_id = c.capture_id AND s.stage_id = c.stage_id
       LEFT JOIN stages p ON p.capture_id = s.capture_id AND p.stage_id = s.phase_id) c
     ASOF LEFT JOIN (${stepsOfRanks(where)}) last ON last.capture_id = c.capture_id AND last.rank = c.rank AND c.start_ns >= last.from_ns
     ASOF LEFT JOIN (${stepsOfRanks(where)}) next ON next.capture_id = c.capture_id AND next.rank = c.rank AND c.start_ns < next.from_ns)`;

const stepsOfRanks = (where: string): string =>
  `SELECT capture_id, rank, stage_id AS step_id, coalesce(device_start_ns, start_ns) AS from_ns, coalesce(device_end_ns, end_ns) AS until_ns
   FROM (${stagesOnRanksSql}) WHERE ${where} AND stage_id = phase_id AND kind IN ${markedSteps}`;

/**
 * SQL of steps with `from_ns` and `until_ns` that include the sends and receives before and after them. A step ends when the next one of its
 * thread starts, even if a copy or send that it launched still runs, so that no time counts twice.
 * @param rows SQL of steps with from_ns, until_ns, and transfers_from_ns and transfers_end_ns of their transfers, null without
 * @param thread SQL of what separates the steps of a thread from those of others
 */
export const withTransfersSql = (rows: string, thread: string): string => {
  const order = `(PARTITION BY ${thread} ORDER BY from_ns, stage_id)`;
  return `SELECT * EXCLUDE (first_ns, next_first_ns) REPLACE (first_ns AS from_ns,
       greatest(first_ns, least(greatest(until_ns, transfers_end_ns), next_first_ns)) AS until_ns)
     FROM (
       SELECT *, lead(first_ns) OVER ${order} AS next_first_ns
       FROM (
         SELECT *, CASE WHEN transfers_from_ns < from_ns THEN least(from_ns, greatest(transfers_from_ns, lag(greatest(until_ns, transfers_end_ns)) OVER ${order})) ELSE from_ns END AS first_ns FROM (${rows})))`;
};
