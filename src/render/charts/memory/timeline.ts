import type { AllocatorMoment, MemoryResult } from '../../../model/documents/memory-result.js';
import { heldBytes, heldParts, mainSeries, momentsOf } from '../../../views/memory-series.js';
import { formatNumber, formatQuantity, nbsp } from '../../../vocabulary/format.js';
import { componentLabels } from '../../../vocabulary/memory-components.js';
import { classColors, type Theme } from '../../palette.js';
import { base, type Chart } from '../chart.js';
import { markOf } from '../lines.js';
import { memoryLinesOption, type MemoryLine } from '../memory-lines.js';
import { componentColor } from './colors.js';

const unit = {
  bytes: 1e9,
  text: (bytes: number) => formatQuantity(bytes / 1e9, 'GB', 4),
  axis: (bytes: number) => `${formatNumber(bytes / 1e9, 2)}${nbsp}GB`,
};
const since = 'since sampling began';

/** The three points on the line of one GPU, else of the host. */
function marksOf({ timeline, profile }: MemoryResult, gpu: number | null): MemoryResult['timeline']['marks'] {
  const gpus = profile.memory_measurements.peak.per_gpu_details;
  if (gpu === null || gpus.length < 2) return timeline.marks;
  return timeline.marks.flatMap((mark) => {
    const own = profile.memory_measurements[mark.point].per_gpu_details.find((one) => one.gpu === gpu);
    return typeof own?.used_bytes === 'number' ? [{ ...mark, bytes: own.used_bytes }] : [];
  });
}

function fullestGpu({ profile }: MemoryResult): number | null {
  const details = profile.memory_measurements.peak.per_gpu_details;
  const [first, ...rest] = details;
  if (!first) return null;
  return rest.reduce((most, one) => ((one.used_bytes ?? 0) > (most.used_bytes ?? 0) ? one : most), first).gpu;
}

const sampledLines = (result: MemoryResult): MemoryLine[] =>
  mainSeries(result).map(({ label, points }, index) => ({
    name: label,
    color: markOf(index).color,
    points: points.map(({ t_s, bytes }) => [t_s, bytes] as const),
  }));

/** Everything that was sampled over the run. */
export const memoryTimelineChart: Chart<MemoryResult> = {
  height: () => 320,
  key: (result) => {
    const lines = sampledLines(result);
    return lines.length > 1 ? lines.map(({ name, color }) => ({ name, color })) : [];
  },
  build: (input) => {
    const { result } = input;
    const lines = sampledLines(result);
    if (lines.length === 0) return base(input);
    return memoryLinesOption(input, {
      lines,
      phases: result.timeline.phases,
      // On several GPUs the points are sums; those of the fullest lie on its line.
      marks: lines.length === 1 ? result.timeline.marks : marksOf(result, fullestGpu(result)),
      unit,
      since,
    });
  },
};

function stacked(result: MemoryResult, part: string, theme: Theme): MemoryLine[] {
  const moments = momentsOf(result, part);
  const begin = result.timeline.phases.find(({ label }) => label === 'load')?.start_s ?? 0;
  return heldParts
    .filter((name) => moments.some((moment) => heldBytes(moment, name) > 0))
    .map((name) => ({
      name: componentLabels[name],
      color: componentColor(name, theme),
      stack: true,
      points: [
        [Math.min(begin, moments[0]?.t_s ?? 0), 0] as const,
        ...moments.map((moment) => [moment.t_s, heldBytes(moment, name)] as const),
      ],
    }));
}

/** One device: what its allocator held, stacked by component, under what the driver counted. `part` is the device. */
export const memoryStackChart: Chart<MemoryResult> = {
  height: () => 320,
  key: (result, part, theme) => [
    ...stacked(result, part, theme).map(({ name, color }) => ({ name, color })),
    { name: 'sampled', color: theme.ink },
  ],
  build: (input) => {
    const { result, part, theme } = input;
    const gpu = part === 'null' ? null : Number(part);
    const sampled = mainSeries(result).find((one) => one.gpu === gpu);
    return memoryLinesOption(input, {
      lines: [
        ...stacked(result, part, theme),
        ...(sampled
          ? [
              {
                name: `${sampled.label}, ${sampled.source}`,
                color: theme.ink,
                points: sampled.points.map(({ t_s, bytes }) => [t_s, bytes] as const),
              },
            ]
          : []),
      ],
      phases: result.timeline.phases,
      marks: sampled ? marksOf(result, gpu) : [],
      unit,
      since,
    });
  },
};

/** Lines of reserved and allocated memory. */
const reservedLines = {
  reserved: { name: 'reserved', color: classColors.sampling, dashed: true },
  peak: { name: 'peak allocated', color: classColors.gemm, dashed: false },
  end: { name: 'allocated at the end', color: classColors.norm, dashed: false },
};

/** Reserved against allocated memory of one device: the gap is what fragmentation and caching hold back. */
export const memoryReservedChart: Chart<MemoryResult> = {
  height: () => 260,
  key: () =>
    Object.values(reservedLines).map(({ name, color, dashed }) => ({
      name: dashed ? `${name} (dashed)` : name,
      color,
    })),
  build: (input) => {
    const moments = momentsOf(input.result, input.part);
    const line = (
      { name, color, dashed }: (typeof reservedLines)['peak'],
      of: (moment: AllocatorMoment) => number | null,
    ): MemoryLine => ({
      name,
      color,
      dashed,
      points: moments.flatMap((moment) => {
        const bytes = of(moment);
        return bytes === null ? [] : [[moment.t_s, bytes] as const];
      }),
    });
    return memoryLinesOption(input, {
      lines: [
        line(reservedLines.reserved, ({ reserved_bytes: bytes }) => bytes),
        line(reservedLines.peak, ({ max_allocated_bytes: bytes }) => bytes),
        line(reservedLines.end, ({ allocated_bytes: bytes }) => bytes),
      ].filter(({ points }) => points.length > 0),
      phases: input.result.timeline.phases,
      marks: [],
      unit,
      since,
    });
  },
};
