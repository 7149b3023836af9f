import type { FC } from 'hono/jsx';
import { opClasses } from '../../../model/classes.js';
import type { TraceKernel } from '../../../model/documents/trace.js';
import { classTables } from '../../charts/trace/classes.js';
import { formatNs, phaseName } from '../../charts/trace/words.js';
import { formatCount, formatNumber, formatPercent, noValue } from '../../format.js';
import { Absent, Behind, ClassLegend, DataTable, Swatch } from '../parts.js';
import type { TraceSection } from './inputs.js';
import { KernelName, TraceChart } from './trace-parts.js';

/** Kernels shown without a click. */
const atOnce = 25;

const KernelTable: FC<{ caption: string; kernels: TraceKernel[] }> = ({ caption, kernels }) => (
  <DataTable
    caption={caption}
    filter
    columns={[
      { head: 'kernel' },
      { head: 'class' },
      { head: 'share', numeric: true },
      { head: 'total', numeric: true },
      { head: 'calls', numeric: true },
      { head: 'mean', numeric: true },
      { head: 'median', numeric: true },
      { head: 'min', numeric: true },
      { head: 'max', numeric: true },
      { head: 'sd', numeric: true },
      { head: 'per phase', wraps: true },
      { head: 'tile' },
      { head: 'type' },
    ]}
    rows={kernels.map((kernel) => [
      <KernelName name={kernel.name} shortName={kernel.short_name} />,
      <Swatch class={kernel.class} />,
      formatPercent(kernel.share),
      formatNs(kernel.total_ns),
      formatCount(kernel.count),
      formatNs(kernel.mean_ns),
      formatNs(kernel.median_ns),
      formatNs(kernel.min_ns),
      formatNs(kernel.max_ns),
      kernel.sd_ns === null ? noValue : formatNs(kernel.sd_ns),
      kernel.phases
        .filter(({ per_instance }) => per_instance > 0)
        .map((phase) => `${phaseName(phase.kind)} ${formatNumber(phase.per_instance)}`)
        .join(', '),
      kernel.tile ?? noValue,
      kernel.dtype ?? noValue,
    ])}
    sortKeys={kernels.map((kernel) => [
      kernel.short_name,
      kernel.class,
      kernel.share,
      kernel.total_ns,
      kernel.count,
      kernel.mean_ns,
      kernel.median_ns,
      kernel.min_ns,
      kernel.max_ns,
      kernel.sd_ns,
      kernel.phases.map(({ kind }) => kind).join(),
      kernel.tile,
      kernel.dtype,
    ])}
  />
);

export const kernelsSection: TraceSection = {
  id: 'kernels',
  title: 'Kernels',
  render: ({ data }) => {
    const { kernels, kernels_total: total } = data;
    if (kernels.length === 0) return <Absent what="There is no kernel." why="The capture recorded none." />;
    return (
      <>
        <p>
          {formatCount(total.count)} kernels of {formatCount(total.names)} names, {formatNs(total.total_ns)}{' '}
          in all. “Per phase” is how many run in a mean instance.
        </p>
        <KernelTable
          caption={`By total time${kernels.length > atOnce ? `, the first ${atOnce}` : ''}; hover for the full name, click a head to sort`}
          kernels={kernels.slice(0, atOnce)}
        />
        {kernels.length > atOnce && (
          <Behind
            title={`All ${kernels.length < total.names ? `of the first ${formatCount(kernels.length)}` : formatCount(kernels.length)}`}
          >
            <KernelTable
              caption={
                kernels.length < total.names
                  ? `The ${formatCount(kernels.length)} costliest of ${formatCount(total.names)} names`
                  : 'All kernels'
              }
              kernels={kernels}
            />
          </Behind>
        )}
      </>
    );
  },
};

export const traceClassesSection: TraceSection = {
  id: 'classes',
  title: 'Kernel classes by phase',
  applies: ({ data }) => classTables(data).length > 0,
  render: ({ data }) => {
    const tables = classTables(data);
    return (
      <>
        <ClassLegend
          classes={opClasses.filter((opClass) =>
            tables.some(({ rows }) => rows.some((row) => row.class === opClass)),
          )}
        />
        <TraceChart
          name="trace_classes"
          result={data}
          label="Share of each kernel class in kernel time, by phase"
        >
          {tables.map(({ kind, instances, rows }) => (
            <DataTable
              caption={
                kind === null
                  ? 'Whole capture'
                  : `${phaseName(kind)}: share of its kernel time, and a mean of ${formatCount(instances)}`
              }
              columns={[
                { head: 'class' },
                { head: 'share', numeric: true },
                { head: 'total', numeric: true },
                { head: 'counted once', numeric: true },
                { head: 'kernels', numeric: true },
                { head: 'each instance', numeric: true },
                { head: 'kernels each', numeric: true },
              ]}
              rows={rows.map((row) => [
                <Swatch class={row.class} />,
                formatPercent(row.share),
                formatNs(row.total_ns),
                formatNs(row.exclusive_ns),
                formatCount(row.count),
                formatNs(row.per_instance_ns),
                formatNumber(row.per_instance),
              ])}
            />
          ))}
        </TraceChart>
      </>
    );
  },
};
