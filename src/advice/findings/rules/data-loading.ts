import { stepKindsSql } from '../../../model/record.js';
import type { TraceScope } from '../../../facts/trace/scope.js';
import { plural } from '../../../vocabulary/format.js';
import { checkOnCpu } from '../operators/copied-context.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import { ms, part } from '../words.js';

/** Share of the run: less is within the run-to-run difference. */
const minShare = 0.05;
/** One load, such as that of the first batch, is no habit of the program. */
const minLoads = 2;
/** On a busy machine other processes lengthen loads: those that nearly all loads exceed are certain, if there are some. */
const leastShare = 0.1;
const minCertainLoads = 4;

/** A step waits until the next batch is made. */
export const dataLoading: Rule = {
  id: 'data_loading',
  title: 'Data loading between steps',
  docs: {
    finds: "Between two steps the program waits for the next batch of PyTorch's DataLoader.",
    needs: "a trace of PyTorch's profiler with marked steps: it records the ranges of the DataLoader",
    gain: 'Per step, the load that overlaps with the step before it if worker processes load: one worker at the low end, as many as the load needs and the machine has cores for (one stays with the program) as expected value. With workers already: twice as many.',
    change: 'Load the next batches in worker processes while the step runs, or do less per sample.',
    withheld: 'fewer than two loads between steps, or less than 5 % of the run',
  },
  references: [
    {
      title: 'PyTorch: single- and multi-process data loading',
      url: 'https://docs.pytorch.org/docs/stable/data.html#single-and-multi-process-data-loading',
    },
  ],
  questions: {
    phrases:
      'does the data loader limit the steps | waiting for DataLoader | num_workers too low | time between steps in the DataLoader | input pipeline bound | loading batches takes longer than the model',
    needs: 'inferscope run --evaluator torch -- <command>',
  },
  async find(context) {
    const timeline = context.operators ?? context.scope;
    if (!timeline) return { outcome: 'not_applicable', why: 'The session has no timeline.' };
    const [row] = await timeline.database.query<Loads>(
      `SELECT count(*) AS n, coalesce(sum(ns), 0) / 1e6 AS ms, coalesce(quantile_cont(ns, ${leastShare}), 0) / 1e6 AS least_ms, any_value(iterator) AS iterator,
         (SELECT avg(end_ns - start_ns) / 1e6 FROM windows WHERE kind IN ${stepKindsSql}) AS step_ms,
         (SELECT quantile_cont(end_ns - start_ns, ${leastShare}) / 1e6 FROM windows WHERE kind IN ${stepKindsSql}) AS least_step_ms,
         (SELECT (max(end_ns) - min(start_ns)) / 1e6 FROM windows WHERE kind IN ${stepKindsSql}) AS run_ms
       FROM (${loadsSql(timeline)})`,
    );
    if (!row || row.n < minLoads)
      return { outcome: 'not_applicable', why: 'No range of a DataLoader lies between two marked steps.' };
    const isCertain = !context.machine.busy;
    const each = isCertain ? row.ms / row.n : row.least_ms;
    const step = isCertain ? row.step_ms : row.least_step_ms;
    const total = each * row.n;
    if (total < minShare * row.run_ms || (!isCertain && row.n < minCertainLoads))
      return {
        outcome: 'not_fired',
        why: `Loads of batches between steps take ${isCertain ? '' : 'at least '}${part(total, row.run_ms)} of the run.`,
      };
    return { outcome: 'fired', findings: [await finding(context, timeline, row, { each, step })] };
  },
};

interface Loads {
  /** Pauses between steps with a load. */
  n: number;
  ms: number;
  least_ms: number;
  iterator: string;
  step_ms: number;
  least_step_ms: number;
  run_ms: number;
}

/** Time that the DataLoader takes between two steps, one row per pause; with a GPU only while it is idle. */
function loadsSql({ source }: TraceScope): string {
  const idle = source.gpu_used
    ? `SELECT p_start, greatest(p_start, start_ns) AS p_from, least(p_end, start_ns + dur_ns) AS p_until FROM pause JOIN rank_gaps ON start_ns < p_end AND start_ns + dur_ns > p_start`
    : 'SELECT p_start, p_start AS p_from, p_end AS p_until FROM pause';
  return `WITH step AS (SELECT end_ns AS p_start, lead(start_ns) OVER (ORDER BY start_ns) AS p_end FROM windows WHERE kind IN ${stepKindsSql}),
    pause AS (SELECT * FROM step WHERE p_end > p_start),
    idle AS (${idle}),
    load AS (SELECT start_ns, end_ns, regexp_extract(raw_name, '#(\\w+)', 1) AS iterator FROM phase_stages WHERE starts_with(raw_name, 'enumerate(DataLoader)#'))
  SELECT p_start, any_value(iterator) AS iterator, sum(least(p_until, end_ns) - greatest(p_from, start_ns)) AS ns
  FROM idle JOIN load ON start_ns < p_until AND end_ns > p_from GROUP BY p_start`;
}

async function finding(
  context: FindingContext,
  timeline: TraceScope,
  loads: Loads,
  { each, step }: { each: number; step: number },
): Promise<FoundDraft> {
  const { run_ms, n, iterator } = loads;
  const { evidence } = await context.evidence<{ ms: number }>(
    `SELECT round(p_start / 1e6, 3) AS after_ms, iterator, round(ns / 1e6, 3) AS ms FROM (${loadsSql(timeline)}) ORDER BY ns DESC`,
    (rows) => `${plural(rows.length, 'load')} between steps, the longest ${ms(rows[0]?.ms ?? 0)}`,
  );
  const hasWorkers = iterator.includes('MultiProcessing');
  const cores = context.manifest.hardware['cpu_usable_cores'];
  const needed = Math.ceil(each / step);
  const workers = typeof cores === 'number' ? Math.max(1, Math.min(needed, cores - 1)) : needed;
  const period = each + step;
  const gain = period - Math.max(step, hasWorkers ? period / 2 : each / workers);
  const low = hasWorkers ? gain / 2 : Math.min(step, each);
  const least = context.machine.busy ? 'at least ' : '';
  return {
    stage: null,
    noise: false,
    title: (share) =>
      `Data loading between steps: ${least}${share} of the run, ${plural(n, 'load')} of ${least}${ms(each)}`,
    at_stake_ms: each,
    run_ms: each * n,
    share: (each * n) / run_ms,
    cause: `Between two steps the program waits ${least}${ms(each)} for the DataLoader, which ${hasWorkers ? 'has worker processes that make batches more slowly than the steps take them' : 'makes the batch in the same process only then'}.`,
    change: hasWorkers
      ? {
          kind: 'code',
          text: 'Start more workers if there are free cores (num_workers), do less per sample (decode and tokenize once, in advance), or make larger pieces at a time.',
          example: 'DataLoader(dataset, num_workers=<twice as many>, persistent_workers=True)',
        }
      : {
          kind: 'code',
          text: 'Load the next batches in worker processes while the step runs, or do less per sample (decode and tokenize once, in advance).',
          example: `DataLoader(dataset, num_workers=${workers}, prefetch_factor=2, persistent_workers=True)`,
        },
    gain: {
      per: 'pause',
      expected_ms: gain,
      low_ms: Math.min(low, gain),
      high_ms: each,
      after_ms: each - gain,
      assumption: hasWorkers
        ? 'Twice as many workers make twice as many batches per second; per pause.'
        : `Batches take as long in a worker as in the program now, with ${plural(workers, 'worker')}, while steps of ${ms(step)} run (low: one worker); per pause.`,
      what_if: null,
    },
    confidence: 'high',
    removes: 'idle',
    covers: ['gpu_idle_between_requests'],
    bars: [],
    evidence: [evidence],
    check: checkOnCpu,
  };
}
