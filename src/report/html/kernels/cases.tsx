import type { FC } from 'hono/jsx';
import type { KernelResult } from '../../../model/documents/kernels.js';
import { formatBytes, formatCount, formatNumber, formatQuantity, noValue } from '../../format.js';
import { caseLabel, intervalShare, outcomeWords } from '../../kernel-words.js';
import { DataTable, FigureText, Swatch } from '../parts.js';

const ns = (value: number | null): string => (value === null ? noValue : formatQuantity(value, 'ns'));
const rate = (value: number | null, unit: string): string =>
  value === null ? noValue : formatQuantity(value, unit);

/** Every case with all that was measured of it. */
export const CaseTable: FC<{ cases: KernelResult[] }> = ({ cases }) => (
  <>
    <DataTable
      caption="Time, work and roof"
      filter
      columns={[
        { head: 'operation' },
        { head: 'class' },
        { head: 'median', numeric: true },
        { head: 'moves', numeric: true },
        { head: 'computes', numeric: true },
        { head: 'of roof', numeric: true },
        { head: 'bound' },
        { head: 'bytes', numeric: true },
        { head: 'FLOPs', numeric: true },
        { head: 'error', numeric: true },
        { head: 'outcome', wraps: true },
      ]}
      rows={cases.map((one) => [
        caseLabel(one, true),
        <Swatch class={one.class} />,
        ns(one.median_ns),
        rate(one.bytes_per_s, 'B/s'),
        rate(one.flops_per_s, 'FLOP/s'),
        <FigureText figure={one.roof_share} />,
        one.bound ?? noValue,
        formatBytes(one.bytes),
        one.flops === 0 ? noValue : formatQuantity(one.flops, 'FLOP'),
        one.max_error === null ? noValue : one.max_error.toExponential(1),
        `${outcomeWords(one)}${one.text === null ? '' : `: ${one.text}`}`,
      ])}
      sortKeys={cases.map((one) => [
        one.case,
        one.class,
        one.median_ns,
        one.bytes_per_s,
        one.flops_per_s,
        one.roof_share.value,
        one.bound,
        one.bytes,
        one.flops,
        one.max_error,
        one.outcome,
      ])}
    />
    <DataTable
      caption="Spread of the runs, and the machine meanwhile"
      columns={[
        { head: 'operation' },
        { head: 'mean', numeric: true },
        { head: '± (95 %)', numeric: true },
        { head: 'sd', numeric: true },
        { head: 'min', numeric: true },
        { head: 'p5', numeric: true },
        { head: 'p95', numeric: true },
        { head: 'max', numeric: true },
        { head: 'runs', numeric: true },
        { head: 'timed by' },
        { head: 'memory', numeric: true },
        { head: 'clock', numeric: true },
        { head: 'power', numeric: true },
        { head: 'throttled by', wraps: true },
      ]}
      rows={cases
        .filter(({ runs }) => runs > 0)
        .map((one) => [
          caseLabel(one, true),
          ns(one.mean_ns.value),
          intervalShare(one) ?? noValue,
          ns(one.sd_ns),
          ns(one.min_ns),
          ns(one.p5_ns),
          ns(one.p95_ns),
          ns(one.max_ns),
          formatCount(one.runs),
          `${one.method}${(one.per_sample ?? 1) > 1 ? `, ${formatNumber(one.per_sample!, 1)} at once` : ''}`,
          <FigureText figure={one.peak_memory_bytes} />,
          <FigureText figure={one.clock_mhz} />,
          <FigureText figure={one.power_w} />,
          one.throttled_by.length === 0 ? 'no' : one.throttled_by.join(', '),
        ])}
    />
    {cases.some(({ behind }) => behind?.length) && (
      <DataTable
        caption="Behind each case: kernels and operators of one run, under the profiler"
        filter
        columns={[
          { head: 'operation' },
          { head: 'what' },
          { head: 'name', wraps: true },
          { head: 'class' },
          { head: 'times', numeric: true },
          { head: 'time', numeric: true },
        ]}
        rows={cases.flatMap((one) =>
          (one.behind ?? []).map((part) => [
            caseLabel(one, true),
            part.what,
            part.name,
            part.class === null ? noValue : <Swatch class={part.class} />,
            formatNumber(part.count, 1),
            ns(part.ns),
          ]),
        )}
      />
    )}
  </>
);
