import { gainOf } from '../gain.js';
import { longHostNs } from '../finding-tables.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import { barsOf, minShare } from '../stage-rule.js';
import { instanceWord, meanCount, everyInstance, ms, part, plural } from '../words.js';
import { checkOnCpu } from './copied-context.js';
import { mainThread, type OperatorStage, operatorsSql } from './operator-stages.js';
import { formatSetting } from '../../../vocabulary/format.js';
import { perInstance } from '../../../vocabulary/stages.js';

/** Share of the steps: a gap that occurs at one place in fewer steps is chance, such as preemption by another process. */
const minStepShare = 0.5;
/** With few instances, the minimum number of occurrences of a place. */
const minInstances = 4;
const minTimes = 8;

/** Gaps between operators of the main thread, by the operators before and after. */
const stretchesSql = ({ kind, instances }: OperatorStage): string =>
  `WITH op AS (
     SELECT window_id, start_ns, start_ns + dur_ns AS end_ns, name FROM (${operatorsSql(kind)}) WHERE tid = ${mainThread}),
   reached AS (
     SELECT *, max(end_ns) OVER (PARTITION BY window_id ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS busy_until,
       lag(name) OVER (PARTITION BY window_id ORDER BY start_ns) AS after_operator FROM op),
   edge AS (SELECT w.stage_id AS window_id, max(op.end_ns) AS last_ns, arg_max(op.name, op.end_ns) AS name, any_value(w.end_ns) AS w_end,
              min(op.start_ns) AS first_ns, arg_min(op.name, op.start_ns) AS first_name, any_value(w.start_ns) AS w_begin
            FROM windows w JOIN op ON op.window_id = w.stage_id GROUP BY w.stage_id),
   stretch AS (
     SELECT window_id, start_ns - busy_until AS ns, after_operator, name AS before_operator FROM reached WHERE start_ns - busy_until > ${longHostNs}
     UNION ALL SELECT window_id, first_ns - w_begin, 'the start of the step', first_name FROM edge WHERE first_ns - w_begin > ${longHostNs}
     UNION ALL SELECT window_id, w_end - last_ns, name, 'the end of the step' FROM edge WHERE w_end - last_ns > ${longHostNs})
   SELECT after_operator, before_operator, count(*) AS stretches, round(count(DISTINCT window_id) / ${instances}, 3) AS of_steps,
     round(sum(ns) / 1e6 / ${instances}, 4) AS ms, round(median(ns) / 1e6, 4) AS median_ms, round(max(ns) / 1e6, 4) AS longest_ms
   FROM stretch GROUP BY ALL ORDER BY ms DESC, after_operator, before_operator`;

type Row = {
  after_operator: string;
  before_operator: string;
  stretches: number;
  of_steps: number;
  ms: number;
  median_ms: number;
};

/** No operator runs: the program runs Python, or waits for data, another thread or the interpreter lock. */
export async function findProgramTime(
  context: FindingContext,
  stage: OperatorStage,
): Promise<FoundDraft | string> {
  const { kind, wall_ms: wall, operators_ms, instances } = stage;
  const { rows, evidence } = await context.evidence<Row>(stretchesSql(stage), (evidenceRows) =>
    evidenceRows
      .slice(0, 3)
      .map(
        (row) =>
          `after ${row.after_operator}, before ${row.before_operator}: ${plural(row.stretches, 'gap')}, ${ms(row.ms)} ${perInstance(kind)}`,
      )
      .join('; '),
  );
  // Places that occur in most steps count with their usual time; others are the interpreter lock or another process.
  const recurring = rows.filter(({ of_steps: stepShare, stretches }) =>
    instances >= minInstances ? stepShare >= minStepShare : stretches >= minTimes,
  );
  const scattered = rows.filter((row) => !recurring.includes(row));
  const isScatteredOverSteps =
    instances > 1 && scattered.reduce((sum, { stretches }) => sum + stretches, 0) >= minStepShare * instances;
  const places = [...recurring, ...(isScatteredOverSteps ? scattered : [])];
  const meanMs = (row: Row) =>
    recurring.includes(row) ? (row.median_ms * row.stretches) / instances : row.ms;
  const time = Math.min(
    Math.max(0, wall - operators_ms),
    places.reduce((sum, row) => sum + meanMs(row), 0),
  );
  const n = places.reduce((sum, { stretches }) => sum + stretches, 0) / instances;
  if (time < minShare * wall || places.length === 0)
    return `recurring gaps over ${formatSetting(longHostNs / 1e6, 'ms')} without an operator take ${part(time, wall)}`;
  const [first] = places;
  return {
    stage: kind,
    noise: true,
    title: (share) =>
      `Program between operators: ${share} of ${everyInstance(kind)} is spent without a running operator, in ${meanCount(Math.max(n, 0.1), 'gap')}`,
    at_stake_ms: time,
    cause: `${instanceWord(kind)} takes ${ms(wall)}; for ${ms(time)} of it no operator runs, mostly between ${first!.after_operator} and ${first!.before_operator}. This is Python code, tokenizing, or waiting for data, another thread or the interpreter lock.`,
    change: {
      kind: 'code',
      text: 'Move this work out of the path between two operators: into its own process (a thread that holds the interpreter lock blocks the others), or ahead of the step that needs it.',
      example: 'py-spy record --gil -- <command>: shows the function and whether it waits for the lock',
    },
    gain: gainOf(wall, time, 'The work overlaps with the operators or is removed.'),
    confidence: 'high',
    bars: barsOf(context, kind, ['host']),
    evidence: [evidence],
    check: checkOnCpu,
  };
}
