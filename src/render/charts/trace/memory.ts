import type { TraceResult } from '../../../model/documents/trace.js';
import { formatBytes } from '../../../vocabulary/format.js';
import { classColors } from '../../palette.js';
import { base, byteAxis, type Chart } from '../chart.js';
import { memoryLinesOption } from '../memory-lines.js';
import { phaseLabel } from '../../../vocabulary/stages.js';

/** Bands behind the lines; a capture may have thousands of decode steps. */
const mostPhases = 200;

const colors = { allocated: classColors.gemm, reserved: classColors.sampling } as const;

/** Allocated and reserved memory, over the capture; the peak is marked. */
export const traceMemoryChart: Chart<TraceResult> = {
  height: () => 280,
  key: () => [
    { name: 'allocated', color: colors.allocated },
    { name: 'reserved (dashed)', color: colors.reserved },
  ],
  build: (input) => {
    const { memory, timeline } = input.result;
    if (!memory) return base(input);
    const axis = byteAxis(
      memory.reserved.reduce((most, [, bytes]) => Math.max(most, bytes), memory.peak.allocated_bytes),
    );
    const seconds = (points: readonly [number, number][]) =>
      points.map(([ns, bytes]): [number, number] => [ns / 1e9, bytes]);
    return memoryLinesOption(input, {
      lines: [
        {
          name: 'reserved',
          color: colors.reserved,
          dashed: true,
          points: seconds(memory.reserved),
        },
        { name: 'allocated', color: colors.allocated, points: seconds(memory.allocated) },
      ].filter(({ points }) => points.length > 0),
      phases: (timeline?.density.phases ?? []).slice(0, mostPhases).map(({ kind, start_ns, dur_ns }) => ({
        label: phaseLabel(kind),
        start_s: start_ns / 1e9,
        end_s: (start_ns + dur_ns) / 1e9,
      })),
      marks: [{ point: 'peak', t_s: memory.peak.t_ns / 1e9, bytes: memory.peak.allocated_bytes }],
      unit: { bytes: axis.bytes, text: formatBytes, axis: axis.label },
      since: 'since the session began',
    });
  },
};
