import type { KernelMap, KernelPlan } from '../../model/documents/kernels.js';

type Point = KernelPlan['points'][number];
type Axis = 'batch_size' | 'seq_len' | 'hidden_size' | 'dtype' | 'backend';

const axes: readonly Axis[] = ['batch_size', 'seq_len', 'hidden_size', 'dtype', 'backend'];
const axisNames: Record<Axis, string> = {
  batch_size: 'batch size',
  seq_len: 'sequence length',
  hidden_size: 'hidden size',
  dtype: 'dtype',
  backend: 'backend',
};

/** Maps over two or more swept sizes: the first two are the axes, and each combination of the others has a map. */
export function mapsOf(points: readonly Point[]): KernelMap[] {
  return groupBy(points, ({ series }) => series).flatMap(({ key: series, members }) => {
    const swept = axes.filter((axis) => valuesOf(members, axis).length > 1);
    const [x, y, ...otherSizes] = swept;
    if (!x || !y) return [];
    return groupBy(members, (point) =>
      otherSizes.map((axis) => `${axisNames[axis]} ${String(point[axis])}`).join(', '),
    ).map(({ key: fixed, members: mapPoints }) => mapOf(series, fixed, mapPoints, x, y));
  });
}

function mapOf(series: string, fixed: string, points: readonly Point[], x: Axis, y: Axis): KernelMap {
  const [xs, ys] = [valuesOf(points, x), valuesOf(points, y)];
  return {
    series,
    fixed,
    x: { name: axisNames[x], values: xs },
    y: { name: axisNames[y], values: ys },
    cells: points.map((point) => ({
      x: xs.indexOf(String(point[x])),
      y: ys.indexOf(String(point[y])),
      case: point.case,
    })),
  };
}

function valuesOf(points: readonly Point[], axis: Axis): string[] {
  const distinct = new Set(points.map((point) => point[axis]).filter((value) => value !== null));
  const values = [...distinct];
  const sizes = values.filter((value) => typeof value === 'number').toSorted((a, b) => a - b);
  return (sizes.length > 0 ? sizes : values).map(String);
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): { key: string; members: T[] }[] {
  const itemsByKey = new Map<string, T[]>();
  for (const item of items) {
    const group = itemsByKey.get(keyOf(item));
    if (group) group.push(item);
    else itemsByKey.set(keyOf(item), [item]);
  }
  return [...itemsByKey].map(([key, members]) => ({ key, members }));
}
