import { gainOf } from '../gain.js';
import { longHostNs } from '../finding-tables.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import { barsOf, minShare } from '../stage-rule.js';
import { instanceWord, meanCount, everyInstance, ms, part, plural } from '../words.js';
import { checkOnCpu } from './copied-context.js';
import { mainThread, type OperatorStage, operatorsSql } from './operator-stages.js';
import { type Sleep, sleepOf } from './sleep.js';
import { formatSetting } from '../../../vocabulary/format.js';
import { perInstance } from '../../../vocabulary/stages.js';

/** Share of the steps: a gap that occurs at one place in fewer steps is chance, such as preemption by another process. */
const minStepShare = 0.5;
/** On a busy machine, the share of the steps with the shortest gaps: other processes lengthen gaps of single steps, not of nearly all. */
const leastShare = 0.1;
/** Share of the gaps in which the main thread sleeps and others compute, for the lock to be the cause. */
const minLockShare = 0.5;
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
     UNION ALL SELECT window_id, w_end - last_ns, name, 'the end of the step' FROM edge WHERE w_end - last_ns > ${longHostNs}),
   of_step AS (SELECT after_operator, before_operator, window_id, sum(ns) AS ns FROM stretch GROUP BY ALL),
   least AS (SELECT after_operator, before_operator, CASE WHEN count(*) >= ${1 - leastShare} * ${instances} THEN quantile_cont(ns, ${leastShare}) ELSE 0 END AS ns
             FROM of_step GROUP BY ALL)
   SELECT after_operator, before_operator, count(*) AS stretches, round(count(DISTINCT window_id) / ${instances}, 3) AS of_steps,
     round(sum(s.ns) / 1e6 / ${instances}, 4) AS ms, round(median(s.ns) / 1e6, 4) AS median_ms, round(any_value(l.ns) / 1e6, 4) AS least_ms, round(max(s.ns) / 1e6, 4) AS longest_ms
   FROM stretch s JOIN least l USING (after_operator, before_operator) GROUP BY ALL ORDER BY ms DESC, after_operator, before_operator`;

type Row = {
  after_operator: string;
  before_operator: string;
  stretches: number;
  of_steps: number;
  ms: number;
  median_ms: number;
  /** In the steps with the shortest gaps (`leastShare`). */
  least_ms: number;
};

/** No operator runs: the program runs Python, or waits for data, another thread or the interpreter lock. */
export async function findProgramTime(
  context: FindingContext,
  stage: OperatorStage,
): Promise<FoundDraft | string> {
  const { kind, wall_ms: wall } = stage;
  const { rows, evidence } = await context.evidence<Row>(stretchesSql(stage), (evidenceRows) =>
    evidenceRows
      .slice(0, 3)
      .map(
        (row) =>
          `after ${row.after_operator}, before ${row.before_operator}: ${plural(row.stretches, 'gap')}, ${ms(row.ms)} ${perInstance(kind)}`,
      )
      .join('; '),
  );
  const sleep = await sleepOf(context, stage);
  const certain = context.machine.busy
    ? ((await certainGaps(context, stage, rows)) ?? gapsAsleep(stage, usualGaps(stage, rows), sleep))
    : null;
  const gaps = certain ?? usualGaps(stage, rows);
  const { ms: time, places } = gaps;
  if ((time < minShare * wall && certain === null) || places.length === 0)
    return `recurring gaps over ${formatSetting(longHostNs / 1e6, 'ms')} without an operator take ${part(time, wall)}`;
  const [first] = places;
  const place = `between ${first!.after_operator} and ${first!.before_operator}`;
  const isLock =
    sleep !== null && sleep.asleep_ms >= minLockShare * time && sleep.others_ms >= minLockShare * time;
  return {
    stage: kind,
    noise: certain === null,
    title: (share) =>
      `Program between operators: ${certain === null ? '' : 'at least '}${share} of ${everyInstance(kind)} is spent without a running operator, in ${meanCount(Math.max(gaps.n, 0.1), 'gap')}`,
    at_stake_ms: time,
    cause: `${instanceWord(kind)} takes ${ms(wall)}; for ${ms(time)} ${gaps.share} no operator runs, mostly ${place}. ${isLock ? `The main thread sleeps for ${ms(sleep.asleep_ms)} of it while other threads of the program compute for ${ms(sleep.others_ms)}: they hold the interpreter lock.` : 'This is Python code, tokenizing, or waiting for data, another thread or the interpreter lock.'}`,
    change: isLock
      ? lockChange
      : {
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

const lockChange: FoundDraft['change'] = {
  kind: 'code',
  text: 'Move what the other threads compute into a process of its own (multiprocessing, a worker of the DataLoader), or into code that releases the interpreter lock.',
  example:
    'multiprocessing.Process(target=work)  # instead of threading.Thread; py-spy dump shows who holds the lock',
};

interface Gaps {
  ms: number;
  /** Words after the time. */
  share: string;
  n: number;
  places: Row[];
}

/** Gaps at the same place of nearly every step, as long as in the fastest steps; null if they are short in these. */
async function certainGaps(
  { operators }: FindingContext,
  { kind, instances }: OperatorStage,
  rows: readonly Row[],
): Promise<Gaps | null> {
  const places = rows.filter(({ least_ms }) => least_ms > 0).toSorted((a, b) => b.least_ms - a.least_ms);
  if (instances < minInstances || places.length === 0) return null;
  const [fast] = await operators!.database.query<{ ms: number }>(
    `SELECT quantile_cont(end_ns - start_ns, ${leastShare}) / 1e6 AS ms FROM windows WHERE kind = '${kind}'`,
  );
  const least = places.reduce((sum, { least_ms }) => sum + least_ms, 0);
  const n = places.reduce((sum, { stretches }) => sum + stretches, 0) / instances;
  return least < minShare * fast!.ms ? null : { ms: least, share: 'and more of nearly every one', n, places };
}

/** The part of gaps in which the main thread sleeps: other processes delay only a thread that is ready to run. Null if it is short. */
function gapsAsleep({ wall_ms: wall }: OperatorStage, gaps: Gaps, sleep: Sleep | null): Gaps | null {
  const asleepMs = Math.min(gaps.ms, sleep?.asleep_ms ?? 0);
  return asleepMs < minShare * wall ? null : { ...gaps, ms: asleepMs };
}

/** Gaps with their usual time. */
function usualGaps({ wall_ms: wall, operators_ms, instances }: OperatorStage, rows: readonly Row[]): Gaps {
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
  return { ms: time, share: 'of it', n, places };
}
