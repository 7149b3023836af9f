import type { BenchAnswer, BenchResult } from '../../../model/documents/bench.js';
import { type BatchLine, batchLines, kneeOf } from '../../charts/bench/batch.js';
import { formatCount, formatNumber, formatPercent, noValue } from '../../format.js';
import { DataTable } from '../parts.js';
import { BatchKey, BenchChart, type BenchSection, Interval, meanOf, outcomeWords } from './bench-parts.js';

const told = new Set<BenchAnswer['id']>(['batch_knee', 'scaling']);

/** Each row's throughput against the smallest batch of its line. */
function rowsOf(lines: readonly BatchLine[]) {
  return lines.flatMap(({ name, points, variant }) => {
    const first = points.find(({ throughput }) => throughput.output_tokens_per_s.value !== null);
    const base = first?.throughput.output_tokens_per_s.value ?? null;
    return points.map((point) => {
      const own = point.throughput.output_tokens_per_s.value;
      const factor = own === null || !base ? null : own / base;
      const times = first ? point.batch_size / first.batch_size : 1;
      return [
        ...(lines.length > 1 ? [name] : []),
        `${formatCount(point.batch_size)}${kneeOf(variant) === point.batch_size ? ' (knee)' : ''}`,
        <Interval figure={point.throughput.output_tokens_per_s} />,
        factor === null ? noValue : `${formatNumber(factor)}×`,
        factor === null ? noValue : formatPercent(factor / times),
        <Interval figure={meanOf(point.latency.tpot_ms)} />,
        <Interval figure={meanOf(point.latency.ttft_ms)} />,
        <Interval figure={meanOf(point.latency.e2e_ms)} />,
        outcomeWords[point.outcome],
      ];
    });
  });
}

const BatchTable = ({ lines }: { lines: readonly BatchLine[] }) => (
  <DataTable
    caption="By batch size; scaling is against the smallest batch"
    columns={[
      ...(lines.length > 1 ? [{ head: '' }] : []),
      { head: 'batch', numeric: true },
      { head: 'output tok/s', numeric: true },
      { head: 'scaling', numeric: true },
      { head: 'efficiency', numeric: true },
      { head: 'TPOT', numeric: true },
      { head: 'TTFT', numeric: true },
      { head: 'end to end', numeric: true },
      { head: 'outcome' },
    ]}
    rows={rowsOf(lines)}
  />
);

/** With several variants the answers stand together in their own section. */
function sentences({ variants }: BenchResult): string[] {
  if (variants.length > 1) return [];
  return variants.flatMap(({ answers }) =>
    answers.filter(({ id }) => told.has(id)).map(({ answer }) => answer),
  );
}

export const batchSection: BenchSection = {
  id: 'batch',
  title: 'Batch size',
  applies: ({ data }) => batchLines(data).length > 0,
  render: ({ data }) => {
    const lines = batchLines(data);
    return (
      <>
        {sentences(data).map((text) => (
          <p>{text}</p>
        ))}
        <BatchKey lines={lines} />
        <div class="two">
          <div>
            <h3>Throughput</h3>
            <BenchChart
              name="bench_batch"
              part="output_tokens_per_s"
              result={data}
              label="Output tokens per second against the batch size, with 95 % intervals"
            >
              <BatchTable lines={lines} />
            </BenchChart>
            <p class="hint">
              Thin dashed: throughput proportional to the batch{lines.length > 1 && ', from the first line'}.
              Bars are 95 % intervals.
            </p>
          </div>
          <div>
            <h3>Time per output token</h3>
            <BenchChart
              name="bench_batch"
              part="tpot_ms"
              result={data}
              label="Time per output token against the batch size, with 95 % intervals"
            >
              <BatchTable lines={lines} />
            </BenchChart>
          </div>
        </div>
      </>
    );
  },
};
