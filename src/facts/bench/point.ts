import type { BenchPoint, PointOutcome } from '../../model/bench.js';
import type { BenchDistribution, BenchPlan, BenchPointResult } from '../../model/documents/bench.js';
import { figure, type Figure, mapFigure, missing, type MissingFigure } from '../../model/figure.js';
import type { Workload } from '../../model/manifest.js';
import { mean } from '../../model/statistics.js';
import type { WorkloadModel } from '../model-work.js';
import type { UtilizationRoofs } from '../utilization/roofs.js';
import { meanOverLaunches, meansBy, type Repeat } from '../statistics.js';
import { benchDistribution } from './distribution.js';
import { pointFlags } from './flags.js';
import { machineFigures } from './machine.js';
import { type MissingReason, missingReasons } from './plan.js';
import { pointRoof } from './roof.js';
import type { Telemetry } from './sampled.js';
import type { BenchRows, DeviceWorkRow, IterationRow, PointRow, RepeatRow } from './rows.js';

export interface PointContext {
  workload: Workload;
  plan: BenchPlan;
  model: WorkloadModel | MissingFigure;
  roofs: UtilizationRoofs | MissingFigure;
  telemetry: Telemetry;
  /** Decode steps are replayed CUDA graphs. */
  graphs: boolean;
  /** Process launches with any data of this variant. */
  launches: number;
  status: string;
}

/** All figures of one point of one variant. Unfinished launches are named in `text` and never averaged in. */
export function pointResult(
  facts: BenchPoint,
  variantRows: BenchRows,
  context: PointContext,
): BenchPointResult {
  const { plan, workload } = context;
  const pointRows = <T extends { point: string | null }>(rows: readonly T[]) =>
    rows.filter(({ point }) => point === facts.point);
  const iterations = pointRows(variantRows.iterations);
  const timed = iterations.filter(({ warmup }) => !warmup);
  const outcomes = pointRows(variantRows.points);
  const reasonFor = missingReasons(plan.not_measured);
  const { outcome, text } = outcomeOf(outcomes, timed.length, context);
  const absent = missing('not_measured', text ?? 'no timed repeat was completed');
  const latency = latencies(
    timed,
    { ...variantRows, steps: pointRows(variantRows.steps), prefills: pointRows(variantRows.prefills) },
    absent,
    plan.not_measured,
  );
  const ttft = meanOf(latency.ttft_ms);
  const tpot = meanOf(latency.tpot_ms);
  const period = !('p50' in latency.itl_ms) ? tpot : meanOf(latency.itl_ms);
  const work =
    timed.length === 0 ? noWork(absent) : deviceWork(pointRows(variantRows.work), ttft, period, reasonFor);
  const tokens = facts.batch_size * facts.output_len;
  const seconds = mean(timed.map(({ e2e_ns }) => e2e_ns / 1e9));
  const result: BenchPointResult = {
    ...facts,
    outcome,
    text,
    warmup: warmupOf(iterations, outcomes, reasonFor),
    interleaved: outcomes.every(({ interleaved }) => interleaved !== false),
    latency,
    throughput: throughput(facts, { ttft, tpot, e2e: meanOf(latency.e2e_ms) }),
    device_work: work,
    machine: machineFigures({ memory: variantRows.memory, outcomes }, context.telemetry, {
      point: facts.point,
      secondsPerToken: timed.length === 0 ? null : seconds / tokens,
      workload,
      plan,
    }),
    ...pointRoof(
      facts,
      { ttft, tpot, decodeKernels: work.decode_kernels, graphs: context.graphs },
      context.model,
      context.roofs,
    ),
    flags: [],
    repeats: timed.map((row) => ({
      launch: row.launch,
      iteration: row.iteration,
      ttft_ms: row.ttft_ns / 1e6,
      tpot_ms: row.tpot_ns === null ? null : row.tpot_ns / 1e6,
      e2e_ms: row.e2e_ns / 1e6,
    })),
  };
  return { ...result, flags: pointFlags(result, context) };
}

/** Mean of a distribution, with its interval. */
export function meanOf(spread: BenchDistribution): Figure {
  if (!('p50' in spread)) return spread;
  return figure(spread.mean, spread.unit, spread.source, {
    n: spread.n,
    ...(spread.sd === null ? {} : { sd: spread.sd }),
    ...(spread.ci95 === null ? {} : { ci95: spread.ci95 }),
    ...(spread.ci95_over && { ci95_over: spread.ci95_over }),
  });
}

const worstFirst: PointOutcome[] = ['out_of_memory', 'failed', 'stopped', 'skipped'];

function outcomeOf(
  rows: readonly PointRow[],
  repeats: number,
  { launches, status }: PointContext,
): { outcome: PointOutcome; text: string | null } {
  const unfinished = rows.filter(({ outcome }) => outcome !== 'measured');
  const worst = worstFirst.flatMap((outcome) => unfinished.filter((row) => row.outcome === outcome))[0];
  if (repeats > 0) {
    const alike = unfinished.filter(({ outcome }) => outcome === worst?.outcome);
    const text = worst
      ? `${outcomeText(worst.outcome)} in ${alike.length} of ${launches} launches${worst.text ? `: ${worst.text}` : ''}`
      : null;
    return { outcome: 'measured', text };
  }
  if (worst) return { outcome: worst.outcome, text: worst.text ?? outcomeText(worst.outcome) };
  return status === 'interrupted'
    ? { outcome: 'stopped', text: 'the run was stopped before this point' }
    : { outcome: 'failed', text: 'no launch reached it' };
}

function outcomeText(outcome: PointOutcome): string {
  return outcome === 'out_of_memory' ? 'out of memory' : outcome;
}

function warmupOf(
  iterations: readonly IterationRow[],
  outcomes: readonly PointRow[],
  reasonFor: MissingReason,
): BenchPointResult['warmup'] {
  const withWarmup = outcomes.filter(({ warmup_iterations }) => warmup_iterations !== null);
  const launches = new Set(iterations.map(({ launch }) => launch)).size;
  const warmups = iterations.filter(({ warmup }) => warmup).length;
  const withVerdict = outcomes.filter(({ stable }) => stable !== null);
  return {
    iterations:
      withWarmup.length > 0
        ? figure(
            mean(withWarmup.map((row) => row.warmup_iterations!)),
            'repeats',
            'points.warmup_iterations, mean of the launches',
            {
              n: withWarmup.length,
            },
          )
        : launches > 0
          ? figure(warmups / launches, 'repeats', 'iterations.warmup, mean of the launches', { n: launches })
          : reasonFor(['warmup'], missing('not_reported', 'the engine does not report its warm-up')),
    stable: withVerdict.length === 0 ? null : withVerdict.every(({ stable }) => stable),
  };
}

/** Latencies of timed repeats, their decode steps, and the device time of their prefills. */
export function latencies(
  timed: readonly RepeatRow[],
  { steps, prefills }: Pick<BenchRows, 'steps' | 'prefills'>,
  absent: MissingFigure,
  notMeasured: BenchPlan['not_measured'] = [],
): BenchPointResult['latency'] {
  const withoutRepeats = timed.length === 0;
  const reasonFor = missingReasons(notMeasured);
  const processes = !notMeasured.some((entry) => entry.figure === 'launches');
  const repeatDistribution = (
    name: string,
    ns: (row: RepeatRow) => number | null,
    source: string,
    otherwise = absent,
  ) =>
    benchDistribution(
      timed.flatMap((row): Repeat[] => {
        const value = ns(row);
        return value === null ? [] : [{ launch: row.launch, value: value / 1e6 }];
      }),
      'ms',
      source,
      withoutRepeats ? absent : reasonFor([name, `${name}_ms`], otherwise),
      undefined,
      processes,
    );
  /** Distribution of steps: the interval of a single launch is over the means of its repeats. */
  const stepDistribution = (
    names: string[],
    source: string,
    valueOf: (step: BenchRows['steps'][number]) => number | null,
    otherwise: MissingFigure,
  ) => {
    const known = steps.filter((step) => valueOf(step) !== null);
    const repeat = (step: BenchRows['steps'][number]) => ({ launch: step.launch, value: valueOf(step)! });
    return benchDistribution(
      known.map(repeat),
      'ms',
      source,
      withoutRepeats ? absent : reasonFor(names, otherwise),
      meansBy(known, ({ iteration }) => iteration, repeat),
      processes,
    );
  };
  const oneToken = missing('one_token', 'it needs at least two output tokens');
  const hasSteps = timed.some(({ output_len }) => output_len > 1);
  const noEvents = missing('no_device_time', 'the engine records no device events');
  return {
    ttft_ms: repeatDistribution('ttft', (row) => row.ttft_ns, 'iterations.ttft_ns'),
    tpot_ms: repeatDistribution(
      'tpot',
      (row) => row.tpot_ns,
      'iterations.tpot_ns',
      hasSteps ? absent : oneToken,
    ),
    itl_ms: stepDistribution(
      ['itl', 'itl_ms'],
      'stages: start of a decode step to the start of the next, the last to the end of the repeat; every token',
      ({ wall_ns }) => wall_ns / 1e6,
      hasSteps ? missing('no_steps', 'the engine does not record its decode steps') : oneToken,
    ),
    e2e_ms: repeatDistribution('e2e', (row) => row.e2e_ns, 'iterations.end_ns − start_ns'),
    prefill_device_ms: benchDistribution(
      prefills.map(({ launch, device_ms: value }) => ({ launch, value })),
      'ms',
      'stages.device_dur_ns, prefill',
      withoutRepeats ? absent : reasonFor(['prefill_device_ms', 'device_time'], noEvents),
      undefined,
      processes,
    ),
    decode_device_ms: stepDistribution(
      ['decode_device_ms', 'device_time'],
      'stages.device_dur_ns, every decode step',
      ({ device_ms }) => device_ms,
      hasSteps ? noEvents : oneToken,
    ),
  };
}

/** Of the mean latencies, so that tokens per second times seconds are tokens. */
export function throughput(
  {
    batch_size: batch,
    input_len: input,
    output_len: output,
  }: Pick<BenchPoint, 'batch_size' | 'input_len' | 'output_len'>,
  { ttft, tpot, e2e }: Record<'ttft' | 'tpot' | 'e2e', Figure>,
): BenchPointResult['throughput'] {
  const rate = mapFigure(
    e2e,
    'tok/s',
    'batch × output tokens / end to end',
    (ms) => (1e3 * batch * output) / ms,
  );
  return {
    output_tokens_per_s: rate,
    total_tokens_per_s: mapFigure(
      rate,
      'tok/s',
      'batch × (prompt + output tokens) / end to end',
      (tokens) => (tokens * (input + output)) / output,
    ),
    decode_tokens_per_s: mapFigure(tpot, 'tok/s', 'batch / TPOT', (ms) => (1e3 * batch) / ms),
    prefill_tokens_per_s: mapFigure(
      ttft,
      'tok/s',
      'batch × prompt tokens / TTFT',
      (ms) => (1e3 * batch * input) / ms,
    ),
    requests_per_s: mapFigure(rate, 'req/s', 'batch / end to end', (tokens) => tokens / output),
  };
}

type DeviceWork = BenchPointResult['device_work'];

function noWork(why: MissingFigure): DeviceWork {
  return {
    prefill_kernel_ms: why,
    decode_kernel_ms: why,
    decode_kernels: why,
    prefill_idle_share: why,
    decode_idle_share: why,
  };
}

/** From the instrumented repeat of each launch, compared with the time of the clean repeats. */
function deviceWork(
  rows: readonly DeviceWorkRow[],
  ttft: Figure,
  period: Figure,
  reasonFor: MissingReason,
): DeviceWork {
  const notRecorded = missing('not_watched', 'device work was not recorded');
  const perStage = (
    kind: string,
    unit: string,
    source: string,
    valueOf: (row: DeviceWorkRow) => number,
    names: string[],
  ): Figure => {
    const kindRows = rows.filter((row) => row.kind === kind);
    return kindRows.length === 0
      ? reasonFor([...names, 'device_work'], notRecorded)
      : meanOverLaunches(
          kindRows.map((row) => ({ launch: row.launch, value: valueOf(row) / row.stages })),
          unit,
          source,
        );
  };
  const idle = (kind: string, clean: Figure, periodName: string): Figure => {
    const busy = perStage(kind, 'ms', 'device_work.busy_ns', ({ busy_ns }) => busy_ns / 1e6, [
      `${kind}_idle_share`,
      'idle_share',
    ]);
    if (busy.value === null) return busy;
    return mapFigure(
      clean,
      'ratio',
      `1 − device_work.busy_ns / stages / ${periodName} of the clean repeats`,
      (ms) => 1 - busy.value / ms,
    );
  };
  const kernelMs = ({ kernel_ns }: DeviceWorkRow) => kernel_ns / 1e6;
  return {
    prefill_kernel_ms: perStage('prefill', 'ms', 'device_work.kernel_ns / stages', kernelMs, [
      'prefill_kernel_ms',
    ]),
    decode_kernel_ms: perStage('decode', 'ms', 'device_work.kernel_ns / stages', kernelMs, [
      'decode_kernel_ms',
    ]),
    decode_kernels: perStage('decode', 'kernels', 'device_work.kernels / stages', ({ kernels }) => kernels, [
      'decode_kernels',
    ]),
    prefill_idle_share: idle('prefill', ttft, 'TTFT'),
    decode_idle_share: idle('decode', period, 'decode step period'),
  };
}
