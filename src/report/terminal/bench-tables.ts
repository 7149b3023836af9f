import type { BenchDistribution, BenchExpectation, BenchPointResult } from '../../model/documents/bench.js';
import { type Figure, figure } from '../../model/figure.js';
import {
  formatFigure,
  formatFigureWithInterval,
  formatFigureWithoutUnit,
  formatMs,
  formatNumber,
  formatPercentColumn,
  isAccountingFault,
  nbsp,
  noValue,
} from '../format.js';
import { colour } from './colour.js';
import { type TextColumn, textTable } from './table.js';
import { hanging, inert, textWidth } from './text.js';

type Points = readonly BenchPointResult[];
type Cell = (point: BenchPointResult) => string;

const right = (head: string): TextColumn => ({ head, align: 'right' });
const measured = (points: Points) => points.filter(({ outcome }) => outcome === 'measured');

/** "4.40 ms ± 0.02". */
function meanCell(spread: BenchDistribution): string {
  if (!('p50' in spread)) return noValue;
  const { mean, unit, source, ci95 } = spread;
  return formatFigureWithInterval(figure(mean, unit, source, ci95 === null ? {} : { ci95 }));
}

const bare = (of: Figure): string => (of.value === null ? noValue : formatNumber(of.value));

type Columns = [head: string, cell: Cell][];

/** A point a row; a column in which nothing is known is left out. `narrow` stands for columns where these are too wide. */
function pointTable(points: Points, columns: Columns, width: number, narrow?: Columns): string {
  if (points.length === 0) return '';
  const cells = columns.map(([, cell]) => points.map(cell));
  const known = columns.flatMap((_, i) =>
    cells[i]!.some((one) => one !== noValue && one !== '') ? [i] : [],
  );
  const table = textTable(
    known.map((i) => right(columns[i]![0])),
    points.map((_, row) => known.map((i) => cells[i]![row]!)),
    { width },
  );
  const tooWide = table.split('\n').some((line) => textWidth(line) > width);
  return tooWide && narrow ? pointTable(points, narrow, width) : table;
}

/** All of the distribution, a table a point: who measures latency wants its spread. */
export function latencyTables(points: Points, width: number): { title: string; text: string }[] {
  return measured(points).map(({ batch_size, input_len, output_len, latency, throughput }) => {
    const named: [string, BenchDistribution][] = [
      ['TTFT', latency.ttft_ms],
      ['TPOT', latency.tpot_ms],
      ['ITL', latency.itl_ms],
      ['e2e', latency.e2e_ms],
      ['GPU prefill', latency.prefill_device_ms],
      ['GPU decode', latency.decode_device_ms],
    ];
    const rows = named.flatMap(([name, spread]) =>
      'p50' in spread
        ? [
            [
              name,
              meanCell(spread),
              spread.sd === null ? noValue : formatMs(spread.sd),
              formatMs(spread.p50),
              formatMs(spread.p95),
              formatMs(spread.p99),
              `${spread.n}${spread.outliers > 0 ? `${nbsp}(${spread.outliers}${nbsp}out)` : ''}`,
            ],
          ]
        : [],
    );
    const rates = [
      `output ${formatFigureWithInterval(throughput.output_tokens_per_s)}`.replaceAll(' ', nbsp),
      `total ${formatFigure(throughput.total_tokens_per_s)}`,
      `prefill ${formatFigure(throughput.prefill_tokens_per_s)}`,
      `decode ${formatFigure(throughput.decode_tokens_per_s)}`,
    ];
    const heads = [{ head: '', flexible: true }, ...['mean', 'sd', 'p50', 'p95', 'p99', 'n'].map(right)];
    return {
      title: `Latency: batch ${batch_size}, ${input_len} in → ${output_len} out`,
      text: [textTable(heads, rows, { width }), ...hanging('  ', rates.join(' · '), width)].join('\n'),
    };
  });
}

/** Output tokens/s is the headline; use of the device stands beside every batch. */
export function throughputTable(points: Points, width: number): string {
  const sorted = measured(points).toSorted((x, y) => x.batch_size - y.batch_size);
  const first = sorted[0]?.throughput.output_tokens_per_s.value ?? null;
  const lengths = new Set(sorted.map(({ input_len, output_len }) => `${input_len} → ${output_len}`));
  const rate = (figure: Figure, narrow: boolean) => (narrow ? bare(figure) : formatFigureWithoutUnit(figure));
  const columns = (narrow: boolean): Columns => [
    ['batch', ({ batch_size }) => String(batch_size)],
    ...(lengths.size > 1
      ? [['in → out', ({ input_len, output_len }) => `${input_len} → ${output_len}`] as Columns[number]]
      : []),
    ['output tok/s', ({ throughput }) => rate(throughput.output_tokens_per_s, narrow)],
    ...(narrow ? [] : [column('total', ({ throughput }) => bare(throughput.total_tokens_per_s))]),
    ['scaling', ({ throughput }) => scaling(throughput.output_tokens_per_s, first)],
    ['TPOT', ({ latency }) => ('p50' in latency.tpot_ms ? formatMs(latency.tpot_ms.mean) : noValue)],
    ['util', ({ machine }) => formatFigure(machine.gpu_utilization_percent)],
    [
      'cores',
      ({ machine }) =>
        machine.gpu_utilization_percent.value === null ? bare(machine.cpu_cores_busy) : noValue,
    ],
    ['idle', percentCells(sorted, ({ device_work }) => device_work.decode_idle_share)],
    ['memory', ({ machine }) => formatFigure(machine.memory_bytes)],
    ...(narrow ? [] : [column('J/token', ({ machine }) => bare(machine.joules_per_output_token))]),
  ];
  return pointTable(sorted, columns(false), width, columns(true));
}

const column = (head: string, cell: Columns[number][1]): Columns[number] => [head, cell];

function scaling({ value }: Figure, first: number | null): string {
  return value === null || !first ? noValue : `${formatNumber(value / first)}×`;
}

export function sequenceTable(points: Points, width: number): string {
  const several = points.some(({ batch_size }) => batch_size !== 1);
  const columns = (time: (spread: BenchDistribution) => string): Columns => [
    ['batch', ({ batch_size }) => (several ? String(batch_size) : noValue)],
    ['in', ({ input_len }) => String(input_len)],
    ['out', ({ output_len }) => String(output_len)],
    ['TTFT', ({ latency }) => time(latency.ttft_ms)],
    ['TPOT', ({ latency }) => time(latency.tpot_ms)],
    ['end to end', ({ latency }) => time(latency.e2e_ms)],
    ['prefill tok/s', ({ throughput }) => bare(throughput.prefill_tokens_per_s)],
    ['decode', ({ throughput }) => bare(throughput.decode_tokens_per_s)],
  ];
  const mean = (spread: BenchDistribution) => number(spreadMean(spread));
  return pointTable(measured(points), columns(meanCell), width, columns(mean));
}

/** Shares of a column, all with the decimals that its smallest needs. */
function percentCells(points: Points, of: (point: BenchPointResult) => Figure): Cell {
  const cells = formatPercentColumn(points.map((point) => of(point).value));
  return (point) => cells[points.indexOf(point)] ?? noValue;
}

function utilizationCells(points: Points, of: (point: BenchPointResult) => Figure): Cell {
  const cell = percentCells(points, of);
  return (point) => `${cell(point)}${isAccountingFault(of(point)) ? ' (accounting fault)' : ''}`;
}

const spreadMean = (spread: BenchDistribution): number | null => ('p50' in spread ? spread.mean : null);

/** "0.51–24 ms", coloured when the measured value is outside. */
function rangeCell(expected: BenchExpectation, value: number | null): string {
  if (!('low' in expected)) return noValue;
  const [low, high] = [formatMs(expected.low), formatMs(expected.high)];
  const [, lowUnit] = low.split(nbsp);
  const text = high.endsWith(`${nbsp}${lowUnit}`) ? `${low.split(nbsp)[0]}–${high}` : `${low}–${high}`;
  if (value === null) return text;
  return value < expected.low || value > expected.high ? colour.yellow(text) : text;
}

/** Each point beside the range that the roofline leads one to expect. */
export function roofTable(points: Points, width: number): string {
  const known = measured(points).filter(({ expected }) => 'low' in expected.ttft || 'low' in expected.tpot);
  const bound = (of: 'memory' | 'compute' | null) => (of === null ? noValue : of);
  const columns: Columns = [
    ['point', ({ point }) => point],
    ['TTFT', ({ latency }) => number(spreadMean(latency.ttft_ms))],
    ['expected', ({ expected, latency }) => rangeCell(expected.ttft, spreadMean(latency.ttft_ms))],
    ['MFU', utilizationCells(known, ({ model_utilization }) => model_utilization.prefill_mfu)],
    ['TPOT', ({ latency }) => number(spreadMean(latency.tpot_ms))],
    ['expected', ({ expected, latency }) => rangeCell(expected.tpot, spreadMean(latency.tpot_ms))],
    ['MBU', utilizationCells(known, ({ model_utilization }) => model_utilization.decode_mbu)],
  ];
  const narrow = columns.filter(([head]) => head !== 'MFU' && head !== 'MBU');
  const table = pointTable(known, columns, width, narrow);
  const [first] = known;
  if (!first) return '';
  const { prefill_bound, decode_bound } = first.model_utilization;
  const { ttft, tpot } = first.expected;
  const told = [...new Set([tpot, ttft].flatMap((one) => ('how' in one ? [one.how] : [])))];
  // They share their low end.
  const how =
    told.length > 1
      ? `of TPOT ${told[0]}; of TTFT ${told[1]!.replace(/^low = .*?; high/, 'high')}`
      : (told[0] ?? '');
  const words = `MFU of prefill (${bound(prefill_bound)}-bound), MBU of decode (${bound(decode_bound)}-bound), at ${first.point}. Expected: ${how}.`;
  return [table, ...hanging('  ', words, width)].join('\n');
}

const number = (value: number | null): string => (value === null ? noValue : formatMs(value));

export function outcomeLines(points: Points, width: number): string[] {
  const names = {
    measured: 'in part',
    out_of_memory: 'out of memory',
    failed: 'failed',
    skipped: 'skipped',
    stopped: 'stopped',
  };
  return points
    .filter(({ text }) => text !== null)
    .flatMap(({ point, outcome, text }) => {
      const [first = ''] = inert(text!.split('\n')[0]!).split('\n');
      return hanging(
        `  ${point.padEnd(15)} `,
        `${colour.yellow(names[outcome])}: ${first.slice(0, 300)}`,
        width,
      );
    });
}
