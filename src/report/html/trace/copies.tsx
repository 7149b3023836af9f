import { formatNs, phaseName } from '../../charts/trace/words.js';
import { formatBytes, formatCount, noValue } from '../../format.js';
import { missingReasons } from '../../words.js';
import { Absent, DataTable, FigureText, MissingNotes } from '../parts.js';
import type { TraceSection } from './inputs.js';

export const copiesSection: TraceSection = {
  id: 'copies',
  title: 'Copies',
  render: ({ data }) => {
    const { copies } = data;
    if (copies.length === 0)
      return <Absent what="There is no copy." why="The capture recorded no copy or memset." />;
    return (
      <>
        <DataTable
          caption="By direction and memory; exposed: time in which nothing else ran"
          columns={[
            { head: 'phase' },
            { head: 'direction' },
            { head: 'memory' },
            { head: 'n', numeric: true },
            { head: 'bytes', numeric: true },
            { head: 'total', numeric: true },
            { head: 'exposed', numeric: true },
            { head: 'mean', numeric: true },
            { head: 'max', numeric: true },
            { head: 'bandwidth', numeric: true },
          ]}
          rows={copies.map((copy) => [
            phaseName(copy.phase),
            copy.kind,
            copy.memory ?? noValue,
            formatCount(copy.count),
            formatBytes(copy.bytes),
            formatNs(copy.total_ns),
            formatNs(copy.exclusive_ns),
            formatNs(copy.mean_ns),
            formatNs(copy.max_ns),
            <FigureText figure={copy.bandwidth_bytes_per_s} />,
          ])}
          sortKeys={copies.map((copy) => [
            copy.phase,
            copy.kind,
            copy.memory,
            copy.count,
            copy.bytes,
            copy.total_ns,
            copy.exclusive_ns,
            copy.mean_ns,
            copy.max_ns,
            copy.bandwidth_bytes_per_s.value,
          ])}
        />
        <MissingNotes
          reasons={missingReasons(
            copies.map((copy): [string, typeof copy.bandwidth_bytes_per_s] => [
              `${copy.kind} bandwidth`,
              copy.bandwidth_bytes_per_s,
            ]),
          )}
        />
      </>
    );
  },
};

export const overlapSection: TraceSection = {
  id: 'overlap',
  title: 'Streams and overlap',
  render: ({ data }) => {
    const { overlap } = data;
    return (
      <>
        <p>{overlap.text}</p>
        <DataTable
          caption="Of the whole capture"
          columns={[
            { head: '' },
            { head: 'time', numeric: true },
            { head: 'beside something else', numeric: true },
          ]}
          rows={[
            ['compute kernels', formatNs(overlap.compute_ns), formatNs(overlap.compute_beside_compute_ns)],
            ['communication', formatNs(overlap.comm_ns), formatNs(overlap.comm_hidden_ns)],
            ['copies', formatNs(overlap.copy_ns), formatNs(overlap.copy_hidden_ns)],
          ]}
        />
        <DataTable
          caption="Streams"
          columns={[
            { head: 'stream' },
            { head: 'context' },
            { head: 'kernels', numeric: true },
            { head: 'kernel time', numeric: true },
            { head: 'copies', numeric: true },
            { head: 'copy time', numeric: true },
            { head: 'first', numeric: true },
            { head: 'last', numeric: true },
          ]}
          rows={overlap.streams.map((stream) => [
            String(stream.stream ?? noValue),
            String(stream.context ?? noValue),
            formatCount(stream.kernels),
            formatNs(stream.kernel_ns),
            formatCount(stream.copies),
            formatNs(stream.copy_ns),
            formatNs(stream.start_ns),
            formatNs(stream.end_ns),
          ])}
        />
      </>
    );
  },
};
