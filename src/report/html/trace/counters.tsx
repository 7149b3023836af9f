import type { FC } from 'hono/jsx';
import type { Document } from '../../../model/document.js';
import type { CountersResult, KernelCounters } from '../../../model/documents/counters.js';
import type { Figure } from '../../../model/figure.js';
import { formatNs } from '../../charts/trace/words.js';
import { formatCount, formatPercent, noValue } from '../../format.js';
import { kernelLabel } from '../../kernel-label.js';
import { Behind, DataTable, FigureText, Notices } from '../parts.js';

/** Of one launch there is no spread to tell. */
const single = (figure: Figure): Figure =>
  figure.value === null || figure.n !== 1
    ? figure
    : { value: figure.value, unit: figure.unit, source: figure.source };

const boundWord = ({ bound }: KernelCounters): string =>
  bound.by === null ? noValue : `${bound.by}${bound.cause === 'near_peak' ? ', near its peak' : ''}`;

const stallWords = ({ stalls }: KernelCounters): string =>
  stalls
    .slice(0, 2)
    .map(({ reason, share }) => `${reason.replaceAll('_', ' ')} ${formatPercent(share)}`)
    .join(', ') || noValue;

/** Nsight Compute's kernels: what bounds each, and what it makes of the device. */
export const CountersSection: FC<{ counters: Document<CountersResult> }> = ({
  counters: { data, issues },
}) => {
  const { kernels } = data;
  return (
    <>
      <p>
        {formatCount(data.launches_total)} launches of {formatCount(kernels.length)} kernels, each replayed
        under Nsight Compute: its times are not those of the timeline. Figures are means over the launches.
      </p>
      <DataTable
        caption="By total time; throughput in percent of what the unit sustains"
        filter
        columns={[
          { head: 'kernel' },
          { head: 'phase' },
          { head: 'bound by' },
          { head: 'launches', numeric: true },
          { head: 'time', numeric: true },
          { head: 'compute', numeric: true },
          { head: 'memory', numeric: true },
          { head: 'DRAM', numeric: true },
          { head: 'L2 hits', numeric: true },
          { head: 'occupancy', numeric: true },
          { head: 'it may reach', numeric: true },
          { head: 'limited by' },
          { head: 'tensor pipe', numeric: true },
          { head: 'waves', numeric: true },
          { head: 'FLOP/byte', numeric: true },
          { head: 'of its roof', numeric: true },
          { head: 'stalls' },
        ]}
        rows={kernels.map((kernel) => [
          <code title={`${kernel.name.slice(0, 400)}\n${kernel.grid ?? ''} × ${kernel.block ?? ''}`}>
            {kernelLabel(kernel.name)}
          </code>,
          kernel.stage ?? noValue,
          <span title={kernel.bound.text}>{boundWord(kernel)}</span>,
          formatCount(kernel.launches),
          kernel.duration_ns.value === null ? (
            <FigureText figure={kernel.duration_ns} />
          ) : (
            formatNs(kernel.duration_ns.value)
          ),
          <FigureText figure={single(kernel.sm_throughput)} />,
          <FigureText figure={single(kernel.memory_throughput)} />,
          <FigureText figure={single(kernel.dram_throughput)} />,
          <FigureText figure={single(kernel.l2_hit_rate)} />,
          <FigureText figure={single(kernel.occupancy.achieved)} />,
          <FigureText figure={single(kernel.occupancy.theoretical)} />,
          kernel.occupancy.limited_by.join(', ') || noValue,
          <FigureText figure={single(kernel.tensor_pipe)} />,
          <FigureText figure={single(kernel.waves)} />,
          <FigureText figure={single(kernel.roofline.arithmetic_intensity)} />,
          <FigureText figure={single(kernel.roofline.roof_share)} />,
          stallWords(kernel),
        ])}
        sortKeys={kernels.map((kernel) => [
          kernelLabel(kernel.name),
          kernel.stage,
          kernel.bound.by,
          kernel.launches,
          kernel.duration_ns.value,
          kernel.sm_throughput.value,
          kernel.memory_throughput.value,
          kernel.dram_throughput.value,
          kernel.l2_hit_rate.value,
          kernel.occupancy.achieved.value,
          kernel.occupancy.theoretical.value,
          kernel.occupancy.limited_by.join(),
          kernel.tensor_pipe.value,
          kernel.waves.value,
          kernel.roofline.arithmetic_intensity.value,
          kernel.roofline.roof_share.value,
          kernel.stalls[0]?.share ?? null,
        ])}
      />
      <Behind title="Why each is bound as it is">
        <DataTable
          caption="NVIDIA’s speed-of-light logic, and the largest stall"
          columns={[{ head: 'kernel' }, { head: 'why', wraps: true }, { head: 'largest stall', wraps: true }]}
          rows={kernels.map((kernel) => [
            <code title={kernel.name.slice(0, 400)}>{kernelLabel(kernel.name)}</code>,
            kernel.bound.text,
            kernel.stalls[0]
              ? `${kernel.stalls[0].reason.replaceAll('_', ' ')}: ${kernel.stalls[0].meaning}`
              : (kernel.stalls_missing ?? noValue),
          ])}
        />
      </Behind>
      <Notices issues={issues} />
    </>
  );
};
