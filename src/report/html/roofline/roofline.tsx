import type { FC } from 'hono/jsx';
import type { MeasuredGpu } from '../../../model/documents/gpu-roofline.js';
import type { GpuRooflineDocument } from '../../../model/documents/roofline.js';
import { formatBytes, formatNumber, formatPercent, formatQuantity, noValue } from '../../format.js';
import { collapsed } from '../../notices.js';
import { documentPage, type PageSection } from '../document-page.js';
import { DataTable, FigureText, Notices } from '../parts.js';

type Page = GpuRooflineDocument;
type Data = Page['data'];

const clocks = (one: { sm_clock_mhz: number | null; power_w: number | null; throttled_by: string[] }) => [
  one.sm_clock_mhz === null ? noValue : formatNumber(one.sm_clock_mhz, 4),
  one.power_w === null ? noValue : formatNumber(one.power_w),
  one.throttled_by.join(', ') || 'nothing',
];
const clockColumns = [
  { head: 'SM clock, MHz', numeric: true },
  { head: 'power, W', numeric: true },
  { head: 'throttled by' },
];

const Compute: FC<{ gpu: MeasuredGpu }> = ({ gpu }) => (
  <DataTable
    caption={`Peak dense FLOP/s of cuda:${gpu.index}`}
    columns={[
      { head: 'dtype' },
      { head: 'measured', numeric: true },
      { head: 'data sheet', numeric: true },
      { head: 'share', numeric: true },
      { head: 'sd', numeric: true },
      { head: 'runs', numeric: true },
      { head: 'ridge, FLOP/byte', numeric: true },
      { head: 'M×N×K' },
      ...clockColumns,
    ]}
    rows={gpu.compute.map((peak) => [
      peak.dtype,
      formatQuantity(peak.flops_per_s, 'FLOP/s'),
      <FigureText figure={peak.sheet} />,
      <FigureText figure={peak.of_sheet} />,
      formatPercent(peak.sd_share),
      peak.runs,
      peak.ridge_flop_per_byte === null ? noValue : formatNumber(peak.ridge_flop_per_byte),
      `${peak.m}×${peak.n}×${peak.k}`,
      ...clocks(peak),
    ])}
  />
);

const Bandwidth: FC<{ gpu: MeasuredGpu }> = ({ gpu }) => (
  <DataTable
    caption={`Memory bandwidth of cuda:${gpu.index}`}
    columns={[
      { head: 'pattern' },
      { head: 'measured', numeric: true },
      { head: 'data sheet', numeric: true },
      { head: 'share', numeric: true },
      { head: 'sd', numeric: true },
      { head: 'runs', numeric: true },
      { head: 'arrays of', numeric: true },
      ...clockColumns,
    ]}
    rows={gpu.bandwidth.map((one) => [
      one.pattern,
      formatQuantity(one.bytes_per_s, 'B/s'),
      <FigureText figure={one.sheet} />,
      <FigureText figure={one.of_sheet} />,
      formatPercent(one.sd_share),
      one.runs,
      formatBytes(one.array_bytes),
      ...clocks(one),
    ])}
  />
);

const Rest: FC<{ gpu: MeasuredGpu }> = ({ gpu }) => {
  const latencies = [
    ['launch: host time', gpu.launch],
    ['launch: kernel to kernel', gpu.launch_device],
    ['launch: until the host knows its end', gpu.launch_round_trip],
    ['graph node: kernel to kernel', gpu.graph_node],
  ] as const;
  const rows = [
    ...(gpu.l2
      ? [['L2 read', formatQuantity(gpu.l2.bytes_per_s, 'B/s'), formatBytes(gpu.l2.array_bytes)]]
      : []),
    ...latencies.flatMap(([what, value]) =>
      value ? [[what, formatQuantity(value.ns, 'ns'), value.method]] : [],
    ),
    ...gpu.host_links.map((link) => [
      `${link.direction.replaceAll('-', ' ')}, ${link.pinned ? 'pinned' : 'pageable'}`,
      formatQuantity(link.bytes_per_s, 'B/s'),
      <FigureText figure={link.of_sheet} />,
    ]),
  ];
  if (rows.length === 0) return <></>;
  return (
    <DataTable
      caption={`L2, launches and the way to the host of cuda:${gpu.index}`}
      columns={[{ head: '' }, { head: 'measured', numeric: true }, { head: 'of its link, array or method' }]}
      rows={rows}
    />
  );
};

const gpusSection: PageSection<Data> = {
  id: 'gpus',
  title: 'GPUs',
  render: ({ data }) => (
    <>
      {data.gpu.gpus.map((gpu) => (
        <>
          <h3>
            cuda:{gpu.index} {gpu.name}
          </h3>
          <p>{gpu.sheet ?? 'No data sheet of this name is known.'}</p>
          <Compute gpu={gpu} />
          <Bandwidth gpu={gpu} />
          <Rest gpu={gpu} />
        </>
      ))}
    </>
  ),
};

const searchSection: PageSection<Data> = {
  id: 'search',
  title: 'Sizes tried',
  applies: ({ data }) => data.gpu.gpus.some((gpu) => gpu.tried.length > 0),
  render: ({ data }) => (
    <DataTable
      caption="Every matrix product of the search"
      filter
      columns={[
        { head: 'GPU' },
        { head: 'dtype' },
        { head: 'M×N×K' },
        { head: 'FLOP/s', numeric: true },
        { head: 'outcome' },
      ]}
      rows={data.gpu.gpus.flatMap((gpu) =>
        gpu.tried.map((one) => [
          `cuda:${gpu.index}`,
          one.dtype,
          `${one.m}×${one.n}×${one.k}`,
          one.flops_per_s === null ? noValue : formatQuantity(one.flops_per_s, 'FLOP/s'),
          one.outcome.replaceAll('_', ' '),
        ]),
      )}
    />
  ),
};

const collectivesSection: PageSection<Data> = {
  id: 'collectives',
  title: 'All-reduce',
  applies: ({ data }) => data.gpu.collectives !== null,
  render: ({ data }) => (
    <DataTable
      caption={`All-reduce over ${data.gpu.collectives!.ranks} GPUs; bus = algorithm × 2(n − 1)/n`}
      columns={['size', 'time', 'algorithm', 'bus', 'sd'].map((head) => ({ head, numeric: true }))}
      rows={data.gpu.collectives!.points.map((point) => [
        formatBytes(point.bytes),
        formatQuantity(point.median_ns, 'ns'),
        formatQuantity(point.algorithm_bytes_per_s, 'B/s'),
        formatQuantity(point.bus_bytes_per_s, 'B/s'),
        formatPercent(point.sd_share),
      ])}
    />
  ),
};

const Summary: FC<{ document: Page; session: { id: string; title: string } }> = ({ document, session }) => {
  const { gpu } = document.data;
  return (
    <header id="summary">
      <p class="kicker">
        inferscope roofline · {session.id} · {gpu.measured_at.slice(0, 16).replace('T', ' ')} UTC
      </p>
      <h1>{session.title}</h1>
      <dl class="lead">
        <div>
          <dt>Measured</dt>
          <dd>
            through {gpu.framework}
            {gpu.driver === null ? '' : `, driver ${gpu.driver}`}, in {formatNumber(gpu.seconds)} s; rates are
            those of the median run.
          </dd>
        </div>
      </dl>
      <Notices issues={collapsed(document.issues)} />
    </header>
  );
};

/** The page of a session that `roofline --record` kept: tables of all that was measured. */
export function rooflineReport(
  document: Page,
  session: { id: string; title: string; started_at: string },
  { clientScript }: { clientScript: string },
): string {
  return documentPage<Data>({
    title: session.title,
    document,
    session,
    summary: <Summary document={document} session={session} />,
    sections: [gpusSection, collectivesSection, searchSection],
    clientScript,
  });
}
