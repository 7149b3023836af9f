import {
  type BaselineColumn,
  baselineColumns,
  type BaselineRow,
  spreadColumns,
} from '../model/documents/baseline-metrics.js';
import type {
  BenchDistribution,
  BenchExpectation,
  BenchPointResult,
  BenchVariant,
} from '../model/documents/bench.js';
import { figure, missing, type Figure } from '../model/figure.js';
import type { ReasonCode } from '../model/reason-codes.js';

/** A number of a row, or why it is missing. */
type Cells = Record<BaselineColumn, Figure>;

const latencies = ['ttft_ms', 'tpot_ms', 'itl_ms', 'e2e_ms'] as const;

/** One statistic of a distribution; if null, with what it requires. */
function statistic(distribution: BenchDistribution, name: (typeof spreadColumns)[number]): Figure {
  if ('value' in distribution) return distribution;
  if (name === 'ci95_low' || name === 'ci95_high') {
    if (!distribution.ci95) return missing('too_few_repeats', 'one repeat has no interval');
    return benchFigure(distribution.ci95[name === 'ci95_low' ? 0 : 1]);
  }
  const value = distribution[name];
  return value === null ? missing('too_few_repeats', 'one repeat has no spread') : benchFigure(value);
}

const benchFigure = (value: number): Figure => figure(value, '', 'bench');

const countFigure = (distribution: BenchDistribution, name: 'n' | 'launches'): Figure =>
  'value' in distribution ? distribution : benchFigure(distribution[name]);

function expectationEnd(expectation: BenchExpectation, end: 'low' | 'high'): Figure {
  return 'value' in expectation ? expectation : benchFigure(expectation[end]);
}

function intervalEnd(estimate: Figure, end: 0 | 1): Figure {
  if (estimate.value === null) return estimate;
  return estimate.ci95 ? benchFigure(estimate.ci95[end]) : missing('too_few_repeats', 'it has no interval');
}

/**
 * Throughput relative to the smallest measured batch of the same lengths, and that factor relative to the batch's factor: 1 is perfect
 * scaling.
 */
function scaling(
  point: BenchPointResult,
  points: readonly BenchPointResult[],
): { factor: Figure; efficiency: Figure } {
  const none = (code: ReasonCode, text: string) => ({
    factor: missing(code, text),
    efficiency: missing(code, text),
  });
  if (!point.parts.includes('throughput')) return none('not_in_part', 'the point is not in the batch sweep');
  const [smallest] = points
    .filter(
      ({ parts, input_len, output_len, throughput }) =>
        parts.includes('throughput') &&
        input_len === point.input_len &&
        output_len === point.output_len &&
        throughput.output_tokens_per_s.value !== null,
    )
    .toSorted((a, b) => a.batch_size - b.batch_size);
  const rate = point.throughput.output_tokens_per_s;
  if (rate.value === null) return { factor: rate, efficiency: rate };
  const smallestRate = smallest?.throughput.output_tokens_per_s.value;
  if (!smallest || !smallestRate) return none('no_base', 'no smaller batch was measured');
  const factor = rate.value / smallestRate;
  return {
    factor: benchFigure(factor),
    efficiency: benchFigure((factor * smallest.batch_size) / point.batch_size),
  };
}

function cellsOf(point: BenchPointResult, points: readonly BenchPointResult[]): Cells {
  const { latency, throughput, device_work, machine, model_utilization: model, warmup } = point;
  const { factor, efficiency } = scaling(point, points);
  const spreads = Object.fromEntries(
    latencies.flatMap((name) =>
      spreadColumns.map((column) => [`${name}_${column}`, statistic(latency[name], column)]),
    ),
  );
  const { prefill_bound: _prefill, decode_bound: _decode, ...utilization } = model;
  return {
    n: countFigure(latency.e2e_ms, 'n'),
    launches: countFigure(latency.e2e_ms, 'launches'),
    ...(spreads as Pick<Cells, BaselineColumn & `${(typeof latencies)[number]}_${string}`>),
    prefill_device_ms_mean: statistic(latency.prefill_device_ms, 'mean'),
    decode_device_ms_mean: statistic(latency.decode_device_ms, 'mean'),
    ...throughput,
    output_tokens_per_s_ci95_low: intervalEnd(throughput.output_tokens_per_s, 0),
    output_tokens_per_s_ci95_high: intervalEnd(throughput.output_tokens_per_s, 1),
    scaling_factor: factor,
    scaling_efficiency: efficiency,
    ...device_work,
    ...machine,
    ...utilization,
    ttft_expected_low_ms: expectationEnd(point.expected.ttft, 'low'),
    ttft_expected_high_ms: expectationEnd(point.expected.ttft, 'high'),
    tpot_expected_low_ms: expectationEnd(point.expected.tpot, 'low'),
    tpot_expected_high_ms: expectationEnd(point.expected.tpot, 'high'),
    warmup_iterations: warmup.iterations,
  };
}

/** A point as a flat row: numbers, and the reason for any null. */
export function baselineRow(variant: BenchVariant, point: BenchPointResult): BaselineRow {
  const cells = cellsOf(point, variant.points);
  const columns = Object.keys(baselineColumns) as BaselineColumn[];
  const numbers = Object.fromEntries(columns.map((name) => [name, cells[name].value])) as Record<
    BaselineColumn,
    number | null
  >;
  const reasons = columns.flatMap((name) => {
    const cell = cells[name];
    return cell.value === null ? [[name, cell.reason.text]] : [];
  });
  return {
    variant: variant.label,
    engine_args: variant.engine_args,
    point: point.point,
    parts: point.parts,
    batch_size: point.batch_size,
    input_len: point.input_len,
    output_len: point.output_len,
    outcome: point.outcome,
    outcome_text: point.text,
    ...numbers,
    prefill_bound: point.model_utilization.prefill_bound,
    decode_bound: point.model_utilization.decode_bound,
    warmup_stable: point.warmup.stable,
    interleaved: point.interleaved,
    flags: point.flags.map(({ code }) => code),
    missing: Object.fromEntries(reasons) as Record<string, string>,
  };
}
