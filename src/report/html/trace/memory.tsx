import type { TraceResult } from '../../../model/documents/trace.js';
import { formatNs, phaseName } from '../../charts/trace/words.js';
import { traceMemoryColors } from '../../charts/trace/memory.js';
import { formatBytes, formatCount, formatPercent } from '../../format.js';
import { thinned } from '../../../model/thinned.js';
import { DataTable } from '../parts.js';
import type { TraceSection } from './inputs.js';
import { ColorKey, TraceChart } from './trace-parts.js';

const shownOperators = 15;
const shownRows = 150;

/** Operators by what their own code allocated, largest first. */
function allocating({ operators }: TraceResult) {
  return (operators?.rows ?? [])
    .filter(({ allocated_bytes: bytes }) => bytes !== null && bytes > 0)
    .toSorted((a, b) => b.allocated_bytes! - a.allocated_bytes!)
    .slice(0, shownOperators);
}

export const traceMemorySection: TraceSection = {
  id: 'memory',
  title: 'Memory of the allocator',
  applies: ({ data }) => data.memory !== null && data.memory !== undefined,
  render: ({ data }) => {
    const { memory, source } = data;
    if (!memory) return <></>;
    const { peak, unused_share: unused } = memory;
    const operators = allocating(data);
    return (
      <>
        <p>
          {memory.source} of capture {memory.capture_id}: at most {formatBytes(peak.allocated_bytes)} were
          given out
          {peak.phase !== null && `, in ${phaseName(peak.phase)}`}
          {memory.max_reserved_bytes !== null &&
            `; ${formatBytes(memory.max_reserved_bytes)} were reserved for it${unused === null ? '' : `, ${formatPercent(unused)} of them never given out`}`}
          .
          {memory.capture_id !== source.attribution.capture_id &&
            ' It is another run of the program than the timeline above.'}
        </p>
        <ColorKey
          label="Lines"
          entries={() => [
            { name: 'given out', color: traceMemoryColors.allocated },
            { name: 'reserved (dashed)', color: traceMemoryColors.reserved },
          ]}
        />
        <TraceChart name="trace_memory" result={data} label="Memory given out and reserved over the capture">
          <DataTable
            caption={`At most ${shownRows} of ${formatCount(memory.allocated.length)} points`}
            columns={[
              { head: 'time', numeric: true },
              { head: 'given out', numeric: true },
            ]}
            rows={thinned(memory.allocated, shownRows).map(([ns, bytes]) => [
              formatNs(ns),
              formatBytes(bytes),
            ])}
          />
        </TraceChart>
        {operators.length > 0 && (
          <DataTable
            caption="Operators by what their own code allocated over the capture, freed memory included"
            columns={[
              { head: 'operator' },
              { head: 'allocated', numeric: true },
              { head: 'calls', numeric: true },
              { head: 'a call', numeric: true },
            ]}
            rows={operators.map(({ name, count, allocated_bytes: bytes }) => [
              <code>{name}</code>,
              formatBytes(bytes!),
              formatCount(count),
              formatBytes(bytes! / count),
            ])}
          />
        )}
      </>
    );
  },
};
