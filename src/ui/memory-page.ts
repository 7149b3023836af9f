import { emptySection } from './empty-section.js';
import type { MemoryOverTime } from '../facts/memory-profile/over-time.js';
import type { ManifestData } from '../model/manifest.js';
import { hasSubject } from '../model/subjects.js';
import type { Block, Section } from '../views/block.js';
import { lineMark } from '../vocabulary/colors.js';

/** Labels of the recorded kinds of memory, with what each counts. */
const kindLabels: Record<string, string> = {
  used: 'used on the GPU, by all processes',
  'used (sampled)': 'used on the GPU, by all processes (sampled)',
  process: 'of the process, by the driver',
  allocated: 'allocated, by the allocator of PyTorch',
  reserved: 'reserved, by the allocator of PyTorch',
  rss: 'resident memory (RSS)',
  peak_rss: 'highest resident memory (RSS) of a process',
  'rss (sampled)': 'resident memory (RSS, sampled)',
  anonymous: 'anonymous memory: heap and stacks',
  file: 'mapped files: libraries, weights',
};

const kinds = Object.keys(kindLabels);
const kindRank = ({ kind }: MemoryOverTime): number =>
  kinds.includes(kind) ? kinds.indexOf(kind) : kinds.length;

/**
 * Memory in use over time: one chart per execution and device or host, in the unit of the session's overview: GB next to a memory
 * profile, else GiB.
 * @param loads label of each load, by execution
 */
export function memorySections(
  series: readonly MemoryOverTime[],
  manifest: ManifestData,
  loads: ReadonlyMap<string, string>,
): Section[] {
  const [unit, bytesPerUnit] = hasSubject(manifest, 'memory') ? (['GB', 1e9] as const) : (['B', 1] as const);
  const charts = new Map<string, MemoryOverTime[]>();
  const several = new Set(series.map(({ execution }) => execution)).size > 1;
  for (const line of series) {
    const { place, execution } = line;
    const part = loads.get(execution) ?? (several ? `execution ${execution}` : null);
    const title = part === null ? place : `${place}, ${part}`;
    charts.set(title, [...(charts.get(title) ?? []), line]);
  }
  // Charts of one execution have one time axis.
  const rangeOf = (execution: string): [number, number] => {
    const times = series.flatMap((line) =>
      line.execution === execution ? [line.points[0]![0], line.points.at(-1)![0]] : [],
    );
    return [Math.min(...times), Math.max(...times)];
  };
  const blocks = [...charts].map(([title, unordered]): Block => {
    // The same order on every device gives a kind the same color.
    const lines = unordered.toSorted((a, b) => kindRank(a) - kindRank(b));
    // A GPU's samples are of the rank that took them, which says nothing if only one did.
    const isShared = (kind: string): boolean => lines.filter((line) => line.kind === kind).length > 1;
    const nameOf = ({ kind, rank }: MemoryOverTime): string =>
      [kindLabels[kind] ?? kind, ...(isShared(kind) && rank !== null ? [`rank ${rank}`] : [])].join(', ');
    // The only line of a chart has no legend.
    const chartTitle = lines.length === 1 ? `${title}: ${nameOf(lines[0]!)}` : title;
    return {
      type: 'chart',
      title: chartTitle,
      label: `Memory in use: ${chartTitle}`,
      chart: {
        form: 'lines',
        x: { name: 'since the first sample', unit: 's', range: rangeOf(lines[0]!.execution) },
        panels: [
          {
            unit,
            series: lines.map((line, index) => ({
              name: nameOf(line),
              ...lineMark(index),
              points: line.points.map(([at, bytes]) => [at, bytes / bytesPerUnit]),
            })),
          },
        ],
      },
      behind: {
        type: 'table',
        title,
        columns: [
          { id: 'series', head: 'series' },
          { id: 'points', head: 'points', numeric: true },
          { id: 'max_bytes', head: 'max', numeric: true },
          { id: 'last_bytes', head: 'last', numeric: true },
        ],
        rows: lines.map((line) => ({
          cells: [
            nameOf(line),
            { count: line.points.length },
            { n: line.points.reduce((most, [, bytes]) => Math.max(most, bytes), 0) / bytesPerUnit, unit },
            { n: (line.points.at(-1)?.[1] ?? 0) / bytesPerUnit, unit },
          ],
        })),
      },
    };
  });
  return [{ id: 'memory-over-time', title: 'Memory over time', blocks }];
}

/** Shown if the session has no memory samples: the reason, and the commands that record them. */
export const noMemory = emptySection(
  'memory-over-time',
  'Memory over time',
  'No memory.',
  'This session has no samples of memory in use.',
  ['inferscope memory MODEL', 'Measure where the memory of a model goes'],
  ['inferscope monitor', 'Sample the memory of host and GPUs every second'],
);
