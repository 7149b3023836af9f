import { formatBytes } from '../../vocabulary/format.js';
import { classColors } from '../palette.js';
import { base, byteAxis, type Chart } from './chart.js';
import { memoryLinesOption } from './memory-lines.js';

/** Resident memory over the session, what ran when behind it, the three reported points on it. */
export const memoryChart: Chart = {
  height: () => 300,
  build: (input) => {
    const { memory } = input.result;
    if (!memory) return base(input);
    const axis = byteAxis(memory.series.reduce((most, { bytes }) => Math.max(most, bytes), 0));
    return memoryLinesOption(input, {
      lines: [
        {
          name: 'resident memory',
          color: classColors.gemm,
          points: memory.series.map(({ t_ms, bytes }) => [t_ms / 1e3, bytes]),
        },
      ],
      phases: memory.phases.map(({ label, start_ms, end_ms }) => ({
        label,
        start_s: start_ms / 1e3,
        end_s: end_ms / 1e3,
      })),
      marks: memory.marks.map(({ point, t_ms, bytes }) => ({ point, t_s: t_ms / 1e3, bytes })),
      unit: { bytes: axis.bytes, text: formatBytes, axis: axis.label },
      since: 'since the session began',
    });
  },
};
