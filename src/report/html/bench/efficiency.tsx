import type { BenchExpectation, BenchPointResult } from '../../../model/documents/bench.js';
import type { Figure } from '../../../model/figure.js';
import { formatMs, formatNumber, nbsp, noValue } from '../../format.js';
import { missingReasons } from '../../words.js';
import { Absent, DataTable, Missing, MissingNotes } from '../parts.js';
import { type BenchSection, Interval, meanOf, pointWords } from './bench-parts.js';

const figures: [name: string, of: (point: BenchPointResult) => Figure][] = [
  ['prefill MFU', (point) => point.model_utilization.prefill_mfu],
  ['prefill MBU', (point) => point.model_utilization.prefill_mbu],
  ['decode MFU', (point) => point.model_utilization.decode_mfu],
  ['decode MBU', (point) => point.model_utilization.decode_mbu],
];

const work: [name: string, of: (point: BenchPointResult) => Figure][] = [
  ['prefill, device events', (point) => meanOf(point.latency.prefill_device_ms)],
  ['prefill, kernels', (point) => point.device_work.prefill_kernel_ms],
  ['decode step, device events', (point) => meanOf(point.latency.decode_device_ms)],
  ['decode step, kernels', (point) => point.device_work.decode_kernel_ms],
];

/** "0.51 to 1.60 ms (13.8 times it)": measured against the lower bound. */
function Expected({ of, measured }: { of: BenchExpectation; measured: Figure }) {
  if ('value' in of) return <Missing reason={of.reason.text} />;
  const times =
    measured.value === null || of.low <= 0
      ? ''
      : `, measured ${formatNumber(measured.value / of.low, 2)}${nbsp}× the bound`;
  return (
    <span title={of.how}>
      {formatMs(of.low)} to {formatMs(of.high)}
      {times}
    </span>
  );
}

const hows = (points: readonly BenchPointResult[]): string[] => [
  ...new Set(
    points.flatMap(({ expected }) =>
      [expected.ttft, expected.tpot].flatMap((one) => ('value' in one ? [] : [one.how])),
    ),
  ),
];

export const efficiencySection: BenchSection = {
  id: 'efficiency',
  title: 'Against the hardware',
  render: ({ data: { variants } }) => {
    const several = variants.length > 1;
    const rows = variants.flatMap(({ label, points }) =>
      points.filter(({ outcome }) => outcome === 'measured').map((point) => ({ label, point })),
    );
    const points = rows.map(({ point }) => point);
    const named = [...figures, ...work].flatMap(([name, of]): [string, Figure][] => {
      const gone = points.map(of).find(({ value }) => value === null);
      return gone ? [[name, gone]] : [];
    });
    const expectations = points.flatMap(({ expected }) => [expected.ttft, expected.tpot]);
    const known = (of: (point: BenchPointResult) => Figure) =>
      points.some((point) => of(point).value !== null);
    const shown = figures.filter(([, of]) => known(of));
    const works = work.filter(([, of]) => known(of));
    const expected = expectations.some((one) => !('value' in one));
    if (shown.length + works.length === 0 && !expected) {
      return (
        <>
          <Absent what="Nothing can be held against the hardware." why="None of its figures is known." />
          <MissingNotes reasons={missingReasons(named)} />
        </>
      );
    }
    return (
      <>
        <DataTable
          caption="Share of what the hardware allows; expected from the roofline"
          columns={[
            ...(several ? [{ head: 'variant' }] : []),
            { head: 'point' },
            ...shown.map(([head]) => ({ head, numeric: true })),
            { head: 'prefill' },
            { head: 'decode' },
            ...(expected ? [{ head: 'TTFT expected' }, { head: 'TPOT expected' }] : []),
          ]}
          rows={rows.map(({ label, point }) => [
            ...(several ? [label] : []),
            pointWords(point),
            ...shown.map(([, of]) => <Interval figure={of(point)} utilization />),
            boundWords(point.model_utilization.prefill_bound),
            boundWords(point.model_utilization.decode_bound),
            ...(expected
              ? [
                  <Expected of={point.expected.ttft} measured={meanOf(point.latency.ttft_ms)} />,
                  <Expected of={point.expected.tpot} measured={meanOf(point.latency.tpot_ms)} />,
                ]
              : []),
          ])}
        />
        <ul class="notes">
          {hows(points).map((how) => (
            <li>Expected: {how}</li>
          ))}
        </ul>
        {works.length > 0 && (
          <DataTable
            caption="On the device: between its events, and the sum of its kernels (framework profiler)"
            columns={[
              ...(several ? [{ head: 'variant' }] : []),
              { head: 'point' },
              { head: 'TTFT', numeric: true },
              { head: 'TPOT', numeric: true },
              ...works.map(([head]) => ({ head, numeric: true })),
            ]}
            rows={rows.map(({ label, point }) => [
              ...(several ? [label] : []),
              pointWords(point),
              <Interval figure={meanOf(point.latency.ttft_ms)} />,
              <Interval figure={meanOf(point.latency.tpot_ms)} />,
              ...works.map(([, of]) => <Interval figure={of(point)} />),
            ])}
          />
        )}
        <MissingNotes reasons={missingReasons(named)} />
      </>
    );
  },
};

const boundWords = (bound: 'memory' | 'compute' | null): string =>
  bound === null ? noValue : `${bound}-bound`;
