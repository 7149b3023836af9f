import { axesOf, elementwiseForm, type MeasuredKernel } from './kernel-table.js';
import { affineFit, affineThrough, logLog, type Line } from './interpolate.js';

type How = 'measured' | 'interpolated' | 'extrapolated' | 'assumed';

export interface KernelTime {
  ns: number;
  how: How;
  /** Half of the 95 % interval of measured cases, as a share; null if unknown. */
  interval?: number | null;
}

interface Wanted {
  kernel: string;
  dtype: string;
  params: Record<string, number>;
  flops: number;
  bytes: number;
}

/** Roofline limit of a kernel on the device, ns: max(F/P, B/BW). */
export type Roof = (kernel: { kernel: string; dtype: string; flops: number; bytes: number }) => number;

/**
 * Share of memory bandwidth that elementwise kernels outside the table usually reach. With these and a table, 24
 * composed stages had a median error of 3.1 %, at most 14.8 % (bench/predict/README.md).
 */
const usualShare = { elementwise: 0.75, strided: 0.22 };

/** A case of a family: coordinates along the axes, time, and roofline time. */
interface Point {
  coordinates: number[];
  ns: number;
  interval: number | null;
  roof: number;
}

/**
 * The time of a kernel from cases of the same kernel and dtype. Within its family (gemm: same n, k; attention: same
 * heads) it interpolates axis by axis on logarithms, and extrapolates at the efficiency of the nearest end. Across
 * families, each is interpolated to the requested size first, and then the time is a line over roofline time between
 * the two nearest. For kernels that only move bytes: a + bytes / rate, fitted to all. Null if the table has no case of
 * such a kernel.
 */
export function kernelTime(
  table: readonly MeasuredKernel[],
  requested: Wanted,
  roof: Roof,
): KernelTime | null {
  if (requested.kernel === 'elementwise') return elementwiseTime(table, requested, roof);
  if (requested.kernel === 'strided') return null;
  const axes = axesOf[requested.kernel];
  const cases = table.filter(
    (kernel) =>
      kernel.kernel === requested.kernel && kernel.dtype === requested.dtype && samePhase(kernel, requested),
  );
  if (!axes || cases.length === 0)
    return isMove(requested.kernel) ? elementwiseTime(table, requested, roof) : null;
  const position = coordinates(requested.params, axes.axes);
  const families = new Map<string, MeasuredKernel[]>();
  for (const testCase of cases) {
    const key = familyKey(testCase.params, axes.family);
    families.set(key, [...(families.get(key) ?? []), testCase]);
  }
  const floor = roof(requested);
  const family = families.get(familyKey(requested.params, axes.family));
  if (family && position) {
    const found = along(pointsOf(family, axes.axes, roof), position);
    if (found) {
      const ns = found.isExtrapolated ? (found.ns * floor) / found.roof : found.ns;
      // The interval applies only to measured cases.
      const { how, interval = null } = found;
      return how === 'measured' && interval !== null ? { ns, how, interval } : { ns, how };
    }
  }
  return across([...families.values()], axes.axes, position, floor, roof);
}

const isMove = (kernel: string): boolean => ['swiglu', 'rope', 'embedding', 'sampling'].includes(kernel);

/** A decode step (one new token per sequence) runs other kernels than a prompt. */
function samePhase(a: Wanted, b: Wanted): boolean {
  if (a.kernel !== 'attention') return true;
  return (a.params['new_tokens'] === 1) === ((b.params['new_tokens'] ?? 1) === 1);
}

const familyKey = (params: Record<string, number>, names: readonly string[]): string =>
  names.map((name) => params[name] ?? 1).join(' ');

function coordinates(params: Record<string, number>, axes: readonly string[]): number[] | null {
  const values = axes.map((name) => params[name]);
  return values.every((value) => value !== undefined) ? values : null;
}

function pointsOf(cases: readonly MeasuredKernel[], axes: readonly string[], roof: Roof): Point[] {
  return cases.flatMap((testCase) => {
    const position = coordinates(testCase.params, axes);
    return position
      ? [{ coordinates: position, ns: testCase.ns, interval: testCase.interval, roof: roof(testCase) }]
      : [];
  });
}

/** `beyond`: the requested size is outside an axis; time and roofline time are then of the nearest size. */
interface Along {
  ns: number;
  interval?: number | null;
  roof: number;
  how: Exclude<How, 'assumed'>;
  isExtrapolated: boolean;
}

/** A size this near outside the measured range is not called extrapolated, because efficiency hardly changes. */
const nearby = 1.25;

/**
 * Axis by axis: points with the same first coordinate are interpolated to the other coordinates, then over the first.
 */
function along(points: readonly Point[], position: readonly number[]): Along | null {
  const [first, ...rest] = position;
  if (points.length === 0) return null;
  if (first === undefined) {
    const [point] = points;
    return point
      ? { ns: point.ns, interval: point.interval, roof: point.roof, how: 'measured', isExtrapolated: false }
      : null;
  }
  const groups = new Map<number, Point[]>();
  for (const point of points) {
    const x = point.coordinates[0]!;
    groups.set(x, [...(groups.get(x) ?? []), { ...point, coordinates: point.coordinates.slice(1) }]);
  }
  const lines = [...groups]
    .map(([x, group]) => ({ x, line: along(group, rest) }))
    .filter((entry): entry is { x: number; line: Along } => entry.line !== null)
    .toSorted((a, b) => a.x - b.x);
  const exact = lines.find(({ x }) => x === first);
  if (exact) return exact.line;
  const above = lines.findIndex(({ x }) => x > first);
  if (above > 0) {
    const [low, high] = [lines[above - 1]!, lines[above]!];
    const extrapolated = low.line.how === 'extrapolated' || high.line.how === 'extrapolated';
    const between = (valueOf: (found: Along) => number) =>
      logLog(first, low.x, valueOf(low.line), high.x, valueOf(high.line));
    return {
      ns: between(({ ns }) => ns),
      roof: between((found) => found.roof),
      how: extrapolated ? 'extrapolated' : 'interpolated',
      isExtrapolated: low.line.isExtrapolated || high.line.isExtrapolated,
    };
  }
  const nearest = above === 0 ? lines[0] : lines.at(-1);
  if (!nearest) return null;
  const far = Math.max(first / nearest.x, nearest.x / first) > nearby;
  const how = far || nearest.line.how === 'extrapolated' ? 'extrapolated' : 'interpolated';
  return { ...nearest.line, interval: null, how, isExtrapolated: true };
}

/** From other shapes: every family at the requested size, and a line over roofline time. */
function across(
  families: readonly MeasuredKernel[][],
  axes: readonly string[],
  position: readonly number[] | null,
  floor: number,
  roof: Roof,
): KernelTime {
  const points = families
    .flatMap((cases) => {
      const all = pointsOf(cases, axes, roof);
      const found = position ? along(all, position) : null;
      // Without a common size every case counts individually.
      return found ? [{ x: found.roof, y: found.ns }] : all.map((point) => ({ x: point.roof, y: point.ns }));
    })
    .toSorted((a, b) => a.x - b.x);
  const above = points.findIndex(({ x }) => x >= floor);
  if (above > 0) {
    const line = affineThrough(points[above - 1]!, points[above]!);
    return { ns: Math.max(floor, value(line, floor)), how: 'interpolated' };
  }
  const nearest = above === 0 ? points[0]! : points.at(-1)!;
  const scaled = (nearest.y * floor) / nearest.x;
  if (above === -1) return { ns: scaled, how: 'extrapolated' };
  // Smaller than all measured cases: part of a kernel's time does not shrink with its work.
  const fit = affineFit(points);
  const ns = fit ? Math.min(nearest.y, Math.max(scaled, value(fit, floor))) : nearest.y;
  return { ns, how: 'extrapolated' };
}

const value = ({ offset, slope }: Line, x: number): number => offset + slope * x;

/** a + bytes / rate over all kernels of the dtype that only move bytes, one kernel's share of each case. */
function elementwiseTime(table: readonly MeasuredKernel[], requested: Wanted, roof: Roof): KernelTime | null {
  const points = movePoints(table, requested.dtype);
  const floor = roof({ ...requested, kernel: 'elementwise', flops: 0 });
  const fit = affineFit(points);
  if (!fit) return null;
  const minX = Math.min(...points.map(({ x }) => x));
  const maxX = Math.max(...points.map(({ x }) => x));
  // Below the smallest case only the fixed part remains.
  const inside = requested.bytes <= maxX && (requested.bytes >= minX || minX < 1e6);
  const how = inside ? 'interpolated' : 'extrapolated';
  return { ns: Math.max(floor, value(fit, requested.bytes)), how };
}

export function movePoints(table: readonly MeasuredKernel[], dtype: string): { x: number; y: number }[] {
  return table.flatMap((kernel) => {
    const form = kernel.dtype === dtype ? elementwiseForm(kernel) : null;
    return form ? [{ x: form.bytes / form.kernels, y: kernel.ns / form.kernels }] : [];
  });
}

/** Without a matching case: bytes at the usual share of bandwidth for such kernels, products at their roof. */
export function assumedTime(requested: Wanted, roof: Roof): KernelTime {
  const share =
    requested.kernel in usualShare ? usualShare[requested.kernel as keyof typeof usualShare] : null;
  return { ns: roof(requested) / (share ?? usualProduct), how: 'assumed' };
}

/**
 * Share of the peak for products and attention without any case in the table: 0.65 to 0.71 of the data sheet's peak in
 * 6 prefills on an H200 (test/fixtures/diagnosis).
 */
const usualProduct = 0.7;
