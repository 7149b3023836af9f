import { stepKinds } from '../../model/record.js';
import type { WaterfallKind } from '../../model/documents/explain.js';
import { type Figure, missing } from '../../model/figure.js';
import { percentile } from '../../model/statistics.js';
import { meanOverLaunches, type Repeat } from '../statistics.js';
import { callKinds, readRecordedSteps } from '../utilization/steps.js';
import { literal, recordsRepeats, type TraceScope } from './scope.js';
import type { PhaseClock } from './windows.js';

/**
 * Mean of the same stage in the execution without a profiler, over process launches if known; missing if the two cannot
 * be compared.
 * @param batchSize only steps of this size
 */
export async function cleanTimeOf(
  scope: TraceScope,
  group: { kind: WaterfallKind; clock: PhaseClock['clock']; name?: string | null },
  batchSize: number | null = null,
): Promise<Figure> {
  const { timing } = scope.source;
  const isHooked = group.kind === 'other' && !group.name && (await areHookedSteps(scope));
  const isStep = isHooked || stepKinds.some((step) => step === group.kind);
  if (group.clock === 'device' && timing && !isStep) return runsAhead;
  switch (group.kind) {
    case 'request':
      return timing
        ? cleanSpans(scope, timing.execution_id, requestsSql(timing.execution_id), 'requests')
        : noCleanExecution;
    case 'sampling':
      return timing
        ? cleanSpans(scope, timing.execution_id, samplingSql(timing.execution_id), 'sampling')
        : noCleanExecution;
    case 'other':
      if (isHooked && timing) return cleanSteps(scope, timing.execution_id, group, batchSize);
      return missing('no_clean_stage', 'a clean execution does not record user ranges');
    case 'load':
    case 'warmup':
      return missing(
        'no_clean_stage',
        'loading and warm-up differ between runs: the second run has files and compiled code in caches',
      );
    default:
      return timing ? cleanSteps(scope, timing.execution_id, group, batchSize) : noCleanExecution;
  }
}

/** Whether the steps of unknown kind are those of the hooks, which a clean execution has too. */
async function areHookedSteps(scope: TraceScope): Promise<boolean> {
  await scope.need('windows');
  const [row] = await scope.database.query<{ hooked: boolean | null }>(
    "SELECT bool_and(raw_name LIKE 'inferscope:other:%') AS hooked FROM windows WHERE kind = 'other'",
  );
  return row?.hooked === true;
}

/** Instead of the clean time, for stages that are compared as recorded. */
export const profiledOnly = missing('no_clean_stage', 'only times under the profiler are compared');

const runsAhead = missing(
  'runs_ahead',
  'the program runs ahead of the device, so host times of the clean execution are not meaningful',
);

/** Times by device events if the clean execution recorded them, else by the host if it waits for the device. */
async function cleanSteps(
  scope: TraceScope,
  executionId: string,
  { kind, clock }: { kind: WaterfallKind; clock: PhaseClock['clock'] },
  batchSize: number | null,
): Promise<Figure> {
  const { database, source } = scope;
  const steps = await readRecordedSteps(database, executionId, {
    rank: source.focus.process_rank ?? source.focus.rank,
    toIterationEnd: recordsRepeats(source),
    kinds: callKinds,
  });
  const rows = steps.filter(
    (step) => step.kind === kind && (batchSize === null || step.batch_size === batchSize),
  );
  if (rows.length === 0) return missing('no_clean_stage', `the clean execution has no ${kind} stage`);
  if (await isExtended(scope, kind, clock)) return betweenSteps;
  const byDevice = rows.every(({ by_device }) => by_device);
  if (clock === 'device' && !byDevice) return runsAhead;
  const repeats = rows.map(({ pid, wall_ns }) => ({ launch: pid, value: wall_ns / 1e6 }));
  const what = byDevice ? 'device events around the stages' : 'stages';
  return withQuantiles(repeats, `${what} of the clean execution ${executionId}`);
}

const betweenSteps = missing(
  'transfers_between_steps',
  'the steps send and receive between each other, and the clean execution does not record these times',
);

/** Share of its windows that sends and receives between steps must add: less is within the run-to-run difference. */
const minExtension = 0.02;

/** Whether sends and receives between steps extend the windows of a kind. */
async function isExtended(
  scope: TraceScope,
  kind: WaterfallKind,
  clock: PhaseClock['clock'],
): Promise<boolean> {
  await scope.need('windows', 'instances');
  const own = clock === 'device' ? 'i.device_until_ns - i.device_start_ns' : 'i.host_end_ns - i.start_ns';
  const [row] = await scope.database.query<{ share: number | null }>(
    `SELECT 1 - sum(${own}) / sum(w.end_ns - w.start_ns) AS share
     FROM windows w JOIN instances i USING (stage_id) WHERE w.kind = ${literal(kind)} AND transfers_end_ns IS NOT NULL`,
  );
  return (row?.share ?? 0) > minExtension;
}

const noCleanExecution = missing('no_clean_execution', 'the session has no execution without a profiler');

async function cleanSpans(
  { database, source }: TraceScope,
  executionId: string,
  sql: string,
  what: string,
): Promise<Figure> {
  const rows = await database.query<{ pid: number; ns: number }>(
    `SELECT pid, ns FROM (${sql}) WHERE rank = ${source.focus.process_rank ?? source.focus.rank ?? 0}`,
  );
  if (rows.length === 0) {
    return missing('no_clean_stage', `the clean execution has no ${what}`);
  }
  const repeats = rows.map(({ pid, ns }) => ({ launch: pid, value: ns / 1e6 }));
  return withQuantiles(repeats, `stages of the clean execution ${executionId}`);
}

function withQuantiles(repeats: readonly Repeat[], source: string): Figure {
  const time = meanOverLaunches(repeats, 'ms', source);
  const sorted = repeats.map(({ value }) => value).toSorted((a, b) => a - b);
  return time.value === null
    ? time
    : { ...time, median: percentile(sorted, 0.5), p10: percentile(sorted, 0.1) };
}

const timedWhere = (executionId: string) =>
  `execution_id = ${literal(executionId)} AND NOT coalesce(warmup, false)`;

const samplingSql = (executionId: string): string =>
  `SELECT pid, coalesce(rank, 0) AS rank, (end_ns - start_ns)::DOUBLE AS ns FROM stages WHERE ${timedWhere(executionId)} AND kind = 'sampling'`;

/** From the start of a prefill to the end of the last step of its iteration. */
const requestsSql = (executionId: string): string =>
  `SELECT pid, coalesce(rank, 0) AS rank, (max(end_ns) - min(start_ns))::DOUBLE AS ns FROM stages
   WHERE ${timedWhere(executionId)} AND kind IN ('prefill', 'decode') AND iteration IS NOT NULL
   GROUP BY pid, coalesce(rank, 0), iteration HAVING count_if(kind = 'prefill') > 0 AND count_if(kind = 'decode') > 0`;
