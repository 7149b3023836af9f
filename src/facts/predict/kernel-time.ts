import { axesOf, elementwiseForm, type MeasuredKernel } from './kernel-table.js';
import { affineFit, affineThrough, logLog, type Line } from './interpolate.js';

type How = 'measured' | 'interpolated' | 'extrapolated' | 'assumed';

export interface KernelTime {
  ns: number;
  method: How;
  /** Half of the 95 % interval of measured cases, as a share; null if unknown. */
  interval?: number | null;
}

interface RequestedKernel {
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
/**
 * Share of the peak for GEMMs and attention without any case in the table: 0.65 to 0.71 of the data sheet's peak in 6
 * prefills on an H200 (test/fixtures/diagnosis).
 */
const usualGemmShare = 0.7;

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
  requested: RequestedKernel,
  roof: Roof,
): KernelTime | null {
  if (requested.kernel === 'elementwise') return elementwiseTime(table, requested, roof);
  if (requested.kernel === 'strided') return null;
  const axes = axesOf[requested.kernel];
  const cases = table.filter(
    (kernel) =>
      kernel.kernel === requested.kernel &&
      kernel.dtype === requested.dtype &&
      isSamePhase(kernel, requested),
  );
  if (!axes || cases.length === 0)
    return movesBytes(requested.kernel) ? elementwiseTime(table, requested, roof) : null;
  const position = coordinates(requested.params, axes.axes);
  const families = new Map<string, MeasuredKernel[]>();
  for (const testCase of cases) {
    const key = familyKey(testCase.params, axes.family);
    families.set(key, [...(families.get(key) ?? []), testCase]);
  }
  const roofNs = roof(requested);
  const family = families.get(familyKey(requested.params, axes.family));
  if (family && position) {
    const familyTime = interpolateFamily(pointsOf(family, axes.axes, roof), position);
    if (familyTime) {
      const ns = familyTime.isExtrapolated ? (familyTime.ns * roofNs) / familyTime.roof : familyTime.ns;
      // The interval applies only to measured cases.
      const { method, interval = null } = familyTime;
      return method === 'measured' && interval !== null ? { ns, method, interval } : { ns, method };
    }
  }
  return interpolateAcross([...families.values()], axes.axes, position, roofNs, roof);
}

const movesBytes = (kernel: string): boolean => ['swiglu', 'rope', 'embedding', 'sampling'].includes(kernel);

/** A decode step (one new token per sequence) runs other kernels than a prompt. */
function isSamePhase(a: RequestedKernel, b: RequestedKernel): boolean {
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

/** `isExtrapolated`: the requested size is outside an axis; time and roofline time are then of the nearest size. */
interface FamilyTime {
  ns: number;
  interval?: number | null;
  roof: number;
  method: Exclude<How, 'assumed'>;
  isExtrapolated: boolean;
}

/** A size this near outside the measured range is not called extrapolated, because efficiency hardly changes. */
const maxNearFactor = 1.25;

/**
 * Axis by axis: points with the same first coordinate are interpolated to the other coordinates, then over the first.
 */
function interpolateFamily(points: readonly Point[], position: readonly number[]): FamilyTime | null {
  const [first, ...rest] = position;
  if (points.length === 0) return null;
  if (first === undefined) {
    const [point] = points;
    return point
      ? {
          ns: point.ns,
          interval: point.interval,
          roof: point.roof,
          method: 'measured',
          isExtrapolated: false,
        }
      : null;
  }
  const groups = new Map<number, Point[]>();
  for (const point of points) {
    const x = point.coordinates[0]!;
    groups.set(x, [...(groups.get(x) ?? []), { ...point, coordinates: point.coordinates.slice(1) }]);
  }
  const lines = [...groups]
    .map(([x, group]) => ({ x, line: interpolateFamily(group, rest) }))
    .filter((entry): entry is { x: number; line: FamilyTime } => entry.line !== null)
    .toSorted((a, b) => a.x - b.x);
  const exact = lines.find(({ x }) => x === first);
  if (exact) return exact.line;
  const above = lines.findIndex(({ x }) => x > first);
  if (above > 0) {
    const [low, high] = [lines[above - 1]!, lines[above]!];
    const extrapolated = low.line.method === 'extrapolated' || high.line.method === 'extrapolated';
    const between = (valueOf: (familyTime: FamilyTime) => number) =>
      logLog(first, low.x, valueOf(low.line), high.x, valueOf(high.line));
    return {
      ns: between(({ ns }) => ns),
      roof: between((familyTime) => familyTime.roof),
      method: extrapolated ? 'extrapolated' : 'interpolated',
      isExtrapolated: low.line.isExtrapolated || high.line.isExtrapolated,
    };
  }
  const nearest = above === 0 ? lines[0] : lines.at(-1);
  if (!nearest) return null;
  const isFar = Math.max(first / nearest.x, nearest.x / first) > maxNearFactor;
  const method = isFar || nearest.line.method === 'extrapolated' ? 'extrapolated' : 'interpolated';
  return { ...nearest.line, interval: null, method, isExtrapolated: true };
}

/** From other shapes: every family at the requested size, and a line over roofline time. */
function interpolateAcross(
  families: readonly MeasuredKernel[][],
  axes: readonly string[],
  position: readonly number[] | null,
  roofNs: number,
  roof: Roof,
): KernelTime {
  const points = families
    .flatMap((cases) => {
      const all = pointsOf(cases, axes, roof);
      const familyTime = position ? interpolateFamily(all, position) : null;
      // Without a common size every case counts individually.
      return familyTime
        ? [{ x: familyTime.roof, y: familyTime.ns }]
        : all.map((point) => ({ x: point.roof, y: point.ns }));
    })
    .toSorted((a, b) => a.x - b.x);
  const above = points.findIndex(({ x }) => x >= roofNs);
  if (above > 0) {
    const line = affineThrough(points[above - 1]!, points[above]!);
    return { ns: Math.max(roofNs, valueAt(line, roofNs)), method: 'interpolated' };
  }
  const nearest = above === 0 ? points[0]! : points.at(-1)!;
  const scaled = (nearest.y * roofNs) / nearest.x;
  if (above === -1) return { ns: scaled, method: 'extrapolated' };
  // Smaller than all measured cases: part of a kernel's time does not shrink with its work.
  const fit = affineFit(points);
  const ns = fit ? Math.min(nearest.y, Math.max(scaled, valueAt(fit, roofNs))) : nearest.y;
  return { ns, method: 'extrapolated' };
}

const valueAt = ({ offset, slope }: Line, x: number): number => offset + slope * x;

/** a + bytes / rate over all kernels of the dtype that only move bytes, one kernel's share of each case. */
function elementwiseTime(
  table: readonly MeasuredKernel[],
  requested: RequestedKernel,
  roof: Roof,
): KernelTime | null {
  const points = movePoints(table, requested.dtype);
  const roofNs = roof({ ...requested, kernel: 'elementwise', flops: 0 });
  const fit = affineFit(points);
  if (!fit) return null;
  const minX = Math.min(...points.map(({ x }) => x));
  const maxX = Math.max(...points.map(({ x }) => x));
  // Below the smallest case only the fixed part remains.
  const inside = requested.bytes <= maxX && (requested.bytes >= minX || minX < 1e6);
  const method = inside ? 'interpolated' : 'extrapolated';
  return { ns: Math.max(roofNs, valueAt(fit, requested.bytes)), method };
}

export function movePoints(table: readonly MeasuredKernel[], dtype: string): { x: number; y: number }[] {
  return table.flatMap((kernel) => {
    const form = kernel.dtype === dtype ? elementwiseForm(kernel) : null;
    return form ? [{ x: form.bytes / form.kernels, y: kernel.ns / form.kernels }] : [];
  });
}

/** Time without a matching case: the roofline at the usual share of bandwidth or peak of such kernels. */
export function assumedTime(requested: RequestedKernel, roof: Roof): KernelTime {
  const share =
    requested.kernel in usualShare ? usualShare[requested.kernel as keyof typeof usualShare] : null;
  return { ns: roof(requested) / (share ?? usualGemmShare), method: 'assumed' };
}
