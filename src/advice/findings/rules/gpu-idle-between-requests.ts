import { stepKindsSql } from '../../../model/record.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import { stageFacts } from '../stage-facts.js';
import { ms, part } from '../words.js';
import { plural } from '../../../vocabulary/format.js';

/** Share of the run: less is within the run-to-run difference. */
const minShare = 0.05;
/** Normal time to prepare the next request. */
const longNs = 500_000;
/** One pause, such as between warm-up and measurement, is no habit of the program. */
const minPauses = 2;
/** Minimum share of requests that start after a pause: fewer pauses are events of the program (first collectives, barriers). */
const minPausedShare = 0.1;

/** Between two stages nothing runs on the device and nothing is launched. */
export const gpuIdleBetweenRequests: Rule = {
  id: 'gpu_idle_between_requests',
  title: 'GPU idle between requests',
  docs: {
    finds: 'Between two requests nothing runs on the GPU and nothing is launched.',
    needs: "a GPU timeline: nsys, or PyTorch's profiler with marked stages",
    gain: 'The idle time between stages; low end half of it.',
    change:
      'Take the next request at once, prepare it while the GPU works, and add requests to running batches.',
    withheld:
      'no marked requests, a single pause, pauses before less than 10 % of the requests, or less than 5 % of the run',
  },
  references: [
    {
      title: 'Orca: continuous batching of requests',
      url: 'https://www.usenix.org/conference/osdi22/presentation/yu',
    },
    {
      title: 'vLLM: optimization and tuning',
      url: 'https://docs.vllm.ai/en/latest/configuration/optimization.html',
    },
  ],
  async find(context) {
    const stages = await stageFacts(context);
    if (stages.length === 0) return { outcome: 'not_applicable', why: 'The session has no GPU timeline.' };
    if (stages.some(({ kind }) => kind === 'outside'))
      return {
        outcome: 'not_applicable',
        why: 'The boundaries between requests are not marked.',
      };
    const [idle] = await context.database.query<{
      n: number;
      ms: number;
      requests: number;
      run_ms: number;
    }>(
      `SELECT count(*) AS n, coalesce(sum(ns), 0) / 1e6 AS ms,
              (SELECT coalesce(nullif(count(*) FILTER (kind = 'prefill'), 0), count(*)) FROM windows WHERE kind IN ${stepKindsSql}) AS requests,
              (SELECT (max(end_ns) - min(start_ns)) / 1e6 FROM windows WHERE kind IN ${stepKindsSql}) AS run_ms
       FROM (${idleSql}) WHERE ns > ${longNs}`,
    );
    if (!idle || idle.n === 0 || idle.ms < minShare * idle.run_ms) {
      return {
        outcome: 'not_fired',
        why: `Between stages the device is idle for ${part(idle?.ms ?? 0, idle?.run_ms ?? 0)} of the run.`,
      };
    }
    if (idle.n < minPauses)
      return {
        outcome: 'not_fired',
        why: `The device is idle between stages only once, for ${ms(idle.ms)}.`,
      };
    if (idle.n < minPausedShare * idle.requests)
      return {
        outcome: 'not_fired',
        why: `The device is idle before ${idle.n} of ${plural(idle.requests, 'request')} only, for ${ms(idle.ms)}.`,
      };
    return { outcome: 'fired', findings: [await finding(context, idle)] };
  },
};

/**
 * Idle time of the device between the end of one stage and the start of the next. Warm-up, loading and the time before the first
 * request are excluded.
 */
const idleSql = `WITH stage AS (
    SELECT start_ns, end_ns, kind, lead(start_ns) OVER (ORDER BY start_ns) AS next_ns, lead(kind) OVER (ORDER BY start_ns) AS next_kind FROM windows WHERE kind <> 'sampling'),
  pause AS (SELECT end_ns AS p_start, next_ns AS p_end FROM stage WHERE next_ns > end_ns AND kind IN ${stepKindsSql} AND next_kind IN ${stepKindsSql})
  SELECT p_start, sum(least(p_end, g.start_ns + g.dur_ns) - greatest(p_start, g.start_ns)) AS ns
  FROM pause JOIN (SELECT start_ns, dur_ns FROM rank_gaps WHERE dur_ns > ${longNs}) g ON g.start_ns < p_end AND g.start_ns + g.dur_ns > p_start GROUP BY p_start`;

async function finding(
  context: FindingContext,
  idle: { n: number; ms: number; run_ms: number },
): Promise<FoundDraft> {
  const { evidence } = await context.evidence<{ ms: number }>(
    `SELECT round(p_start / 1e6, 3) AS after_ms, round(ns / 1e6, 3) AS ms FROM (${idleSql}) WHERE ns > ${longNs} ORDER BY ns DESC`,
    (rows) =>
      `${plural(rows.length, 'pause')} of the device between stages, the longest ${ms(rows[0]?.ms ?? 0)}`,
  );
  const each = idle.ms / idle.n;
  return {
    stage: null,
    title: (share) =>
      `GPU idle between requests: ${share} of the run, ${plural(idle.n, 'pause')} of ${ms(each)}${idle.n === 1 ? '' : ' on average'}`,
    at_stake_ms: each,
    run_ms: idle.ms,
    share: idle.ms / idle.run_ms,
    cause: `Between two stages the device is idle for ${ms(each)}${idle.n === 1 ? '' : ' on average'}, ${ms(idle.ms)} of ${ms(idle.run_ms)} in total: no request is queued, or the host polls too rarely or prepares the next request only then.`,
    change: {
      kind: 'code',
      text: 'Start the next request as soon as the last one is done (a queue instead of polling with sleep), prepare it while the device is busy, and add requests to running batches (continuous batching).',
      example: 'request = queue.get()  # instead of time.sleep() in a loop',
    },
    gain: {
      per: 'pause',
      expected_ms: each,
      low_ms: 0.5 * each,
      high_ms: each,
      after_ms: 0,
      assumption: 'A request is always queued when the device becomes free; per pause.',
      what_if: null,
    },
    confidence: 'high',
    removes: 'idle',
    bars: [],
    evidence: [evidence],
    check: 'inferscope run --evaluator none,nsys -- <the changed command>',
  };
}
