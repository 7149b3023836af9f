import { formatNs, phaseName } from '../../charts/trace/words.js';
import { formatBytes, formatCount, noValue } from '../../format.js';
import { DataTable } from '../parts.js';
import type { TraceSection } from './inputs.js';

const verdictWords = {
  scheduling: 'scheduling',
  kernels: 'kernels',
  allocation: 'allocation',
  cpu: 'computing on the CPU',
};

export const traceOperatorsSection: TraceSection = {
  id: 'operators',
  title: 'Operators',
  applies: ({ data }) => data.operators !== null,
  render: ({ data }) => {
    if (!data.operators) return null;
    const { rows, text, phase } = data.operators;
    return (
      <>
        <p>{text}</p>
        <DataTable
          caption={`Operators of ${phaseName(phase)}: “costs” says whether its own host time, its kernels or the allocator takes most`}
          filter
          columns={[
            { head: 'operator' },
            { head: 'costs' },
            { head: 'calls', numeric: true },
            { head: 'host, own', numeric: true },
            { head: 'host, with children', numeric: true },
            { head: 'device, own', numeric: true },
            { head: 'kernels', numeric: true },
            { head: 'allocated', numeric: true },
            { head: 'in allocator calls', numeric: true },
            { head: 'shapes, most frequent' },
            { head: 'called from' },
          ]}
          rows={rows.map((row) => [
            <code>{row.name}</code>,
            verdictWords[row.verdict],
            formatCount(row.count),
            formatNs(row.self_cpu_ns),
            formatNs(row.cpu_ns),
            formatNs(row.device_ns),
            formatCount(row.kernels),
            row.allocated_bytes === null ? noValue : formatBytes(row.allocated_bytes),
            formatNs(row.allocation_ns),
            row.shapes[0] ? (
              <code title={shapesTitle(row.shapes)}>{row.shapes[0].input_shapes}</code>
            ) : (
              noValue
            ),
            row.call_path.length > 0 ? (
              <code title={row.call_path.join(' › ')}>{row.call_path.slice(-2).join(' › ')}</code>
            ) : (
              noValue
            ),
          ])}
          sortKeys={rows.map((row) => [
            row.name,
            row.verdict,
            row.count,
            row.self_cpu_ns,
            row.cpu_ns,
            row.device_ns,
            row.kernels,
            row.allocated_bytes,
            row.allocation_ns,
            row.shapes[0]?.input_shapes ?? '',
            row.call_path.join(),
          ])}
        />
      </>
    );
  },
};

const shapesTitle = (shapes: { input_shapes: string; count: number }[]): string =>
  shapes
    .slice(0, 6)
    .map(({ input_shapes, count }) => `${count} × ${input_shapes}`)
    .join('\n');
