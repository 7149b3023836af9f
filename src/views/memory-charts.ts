import type { AllocatorMoment, MemoryResult } from '../model/documents/memory-result.js';
import { cutEnd } from '../vocabulary/cut.js';
import { classColors, componentColor, lineMark } from '../vocabulary/colors.js';
import { plural } from '../vocabulary/format.js';
import { componentLabels } from '../vocabulary/memory-components.js';
import { pointColors, pointLabels } from '../vocabulary/memory-points.js';
import type { LinesChart, Series, WaterfallChart } from './chart.js';
import { allocatedPartBytes, allocatedParts, mainSeries, momentsOf, shortPlace } from './memory-series.js';

type Marks = MemoryResult['timeline']['marks'];

const gb = (bytes: number): number => bytes / 1e9;

const runChart = (
  { timeline: { phases } }: MemoryResult,
  series: readonly Series[],
  marks: Marks = [],
): LinesChart => ({
  form: 'lines',
  x: { name: 'since sampling started', unit: 's' },
  panels: [{ unit: 'GB', series }],
  shades: phases.map(({ label, start_s, end_s }) => ({ name: label, from: start_s, to: end_s })),
  marks: marks.map(({ point, t_s, bytes }) => ({
    x: t_s,
    y: gb(bytes),
    name: pointLabels[point],
    color: pointColors[point],
  })),
});

/** The three measurement points on the line of one GPU, or of the host. */
function marksOf({ timeline, profile }: MemoryResult, gpu: number | null): Marks {
  const gpus = profile.memory_measurements.peak.per_gpu_details;
  if (gpu === null || gpus.length < 2) return timeline.marks;
  return timeline.marks.flatMap((mark) => {
    const details = profile.memory_measurements[mark.point].per_gpu_details.find(
      (detail) => detail.gpu === gpu,
    );
    return typeof details?.used_bytes === 'number' ? [{ ...mark, bytes: details.used_bytes }] : [];
  });
}

function fullestGpu({ profile }: MemoryResult): number | null {
  const [first, ...rest] = profile.memory_measurements.peak.per_gpu_details;
  if (!first) return null;
  return rest.reduce(
    (fullest, detail) => ((detail.used_bytes ?? 0) > (fullest.used_bytes ?? 0) ? detail : fullest),
    first,
  ).gpu;
}

const linePoints = (points: readonly { t_s: number; bytes: number }[]): Series['points'] =>
  points.map(({ t_s, bytes }) => [t_s, gb(bytes)]);

/** All memory samples of the run. */
export function timelineChart(data: MemoryResult): LinesChart {
  const lines = mainSeries(data).map(({ label, points }, index) => ({
    name: label,
    color: lineMark(index).color,
    points: linePoints(points),
  }));
  // On several GPUs the points are sums, so marks use the values of the fullest GPU.
  return runChart(data, lines, lines.length === 1 ? data.timeline.marks : marksOf(data, fullestGpu(data)));
}

/** One device: allocator memory stacked by component, below the driver's count. */
export function stackChart(data: MemoryResult, gpu: number | null): LinesChart {
  const moments = momentsOf(data, gpu);
  const loading = data.timeline.phases.find(({ label }) => label === 'load')?.start_s ?? 0;
  const start = Math.min(loading, moments[0]?.t_s ?? 0);
  const series = mainSeries(data).find((line) => line.gpu === gpu);
  return runChart(
    data,
    [
      ...allocatedParts
        .filter((name) => moments.some((moment) => allocatedPartBytes(moment, name) > 0))
        .map((name): Series => ({
          name: componentLabels[name],
          color: componentColor(name),
          style: 'stack',
          points: [
            [start, 0],
            ...moments.map((moment) => [moment.t_s, gb(allocatedPartBytes(moment, name))] as const),
          ],
        })),
      ...(series
        ? [
            {
              name: `${series.label}, ${series.source}`,
              color: 'ink' as const,
              points: linePoints(series.points),
            },
          ]
        : []),
    ],
    series ? marksOf(data, gpu) : [],
  );
}

/** Reserved against allocated memory of one device: the gap is fragmentation and cache. */
export function reservedChart(data: MemoryResult, gpu: number | null): LinesChart {
  const moments = momentsOf(data, gpu);
  const line = (
    name: string,
    color: Series['color'],
    dash: 'solid' | 'dashed',
    bytesOf: (moment: AllocatorMoment) => number | null,
  ): Series => ({
    name,
    color,
    dash,
    points: moments.flatMap((moment) => {
      const bytes = bytesOf(moment);
      return bytes === null ? [] : [[moment.t_s, gb(bytes)] as const];
    }),
  });
  const lines = [
    line('reserved', classColors.sampling, 'dashed', ({ reserved_bytes: bytes }) => bytes),
    line('peak allocated', classColors.gemm, 'solid', ({ max_allocated_bytes: bytes }) => bytes),
    line('allocated at the end', classColors.norm, 'solid', ({ allocated_bytes: bytes }) => bytes),
  ];
  return runChart(
    data,
    lines.filter(({ points }) => points.length > 0),
  );
}

/** Maximum bars on a page; the table has all allocations of the snapshot. */
const maxAllocations = 20;

/** Live allocations at the allocator's peak, by the place in the program that made them. */
export const allocationsChart = (allocations: NonNullable<MemoryResult['allocations']>): WaterfallChart => ({
  form: 'waterfall',
  unit: 'GB',
  bars: allocations.slice(0, maxAllocations).map(({ operator, stage, bytes, blocks }) => ({
    name: cutEnd(shortPlace(operator), 60),
    value: gb(bytes),
    meaning: `${stage}${blocks === null ? '' : `, ${plural(blocks, 'block')}`}: ${operator}`,
    color: classColors.gemm,
  })),
});
