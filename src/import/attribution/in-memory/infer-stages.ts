import type { StageName } from '../../stage-names.js';
import {
  type Inference,
  inferRanges,
  inferredNames,
  type InferredRange,
  type LaunchedKernels,
  type MarkedRange,
  type ProcessKernels,
} from '../infer-ranges.js';
import type { InMemoryEvents } from './events.js';
import type { InMemoryRanges } from './ranges.js';
import type { InMemoryTrace } from './trace.js';

/**
 * Like inferFromTables, for a capture in memory.
 * @param label by the code of a name
 * @param calls of each kernel; −1: none
 */
export function inferInMemory(
  trace: InMemoryTrace,
  names: readonly string[],
  label: (code: number) => StageName,
  calls: Int32Array,
): Promise<Inference> {
  const texts = (codes: Iterable<number>) => [...new Set(codes)].map((code) => names[code] ?? '');
  return inferRanges({
    kernelNames: texts(trace.kernels.shapes['name'] ?? []),
    rangeNames: texts(trace.ranges.shapes['name'] ?? []),
    // oxlint-disable-next-line require-await
    marks: async (isMark) => selectMarks(trace.ranges, label, isMark),
    processes: () => processKernels(trace, names, calls),
  });
}

function selectMarks(
  { rows, start_ns: start, end_ns: end, shape, shapes }: InMemoryRanges,
  label: (code: number) => StageName,
  isMark: (label: StageName) => boolean,
): MarkedRange[] {
  const labels = Array.from(shapes['name'] ?? [], (code) => label(code));
  const isWanted = labels.map(isMark);
  const ranges: MarkedRange[] = [];
  for (let row = 0; row < rows; row++) {
    const code = shape[row]!;
    if (!isWanted[code] || Number.isNaN(end[row]!)) continue;
    ranges.push({ pid: shapes['pid']![code]!, startNs: start[row]!, endNs: end[row]!, label: labels[code]! });
  }
  return ranges;
}

// oxlint-disable-next-line require-await
async function* processKernels(
  trace: InMemoryTrace,
  names: readonly string[],
  callOf: Int32Array,
): AsyncIterable<ProcessKernels> {
  const { kernels, calls } = trace;
  for (const { pid, device, rank, rows } of busiestDevices(kernels)) {
    const { shape, shapes, start_ns: start, dur_ns: dur } = kernels;
    const isProcess = Array.from(
      shapes['pid'] ?? [],
      (value, code) => value === pid && shapes['device']![code] === device,
    );
    // Loops: `from` with a function takes ten times as long, and these arrays have millions of rows.
    const everyRow = (stride: number): Int32Array => {
      const found = new Int32Array(Math.ceil(rows / stride));
      for (let i = 0, n = 0; n < rows; i++)
        if (isProcess[shape[i]!]) {
          if (n % stride === 0) found[n / stride] = i;
          n++;
        }
      return found;
    };
    yield {
      pid,
      rank,
      rows,
      // oxlint-disable-next-line require-await
      async sample(stride) {
        const sampled = everyRow(stride);
        return {
          dur_ns: Float64Array.from(sampled, (row) => dur[row]!),
          called_ns: Float64Array.from(sampled, (row) =>
            callOf[row]! < 0 ? start[row]! : calls.start_ns[callOf[row]!]!,
          ),
        };
      },
      // oxlint-disable-next-line require-await
      sequence: async () => sequenceOf(trace, everyRow(1), names, callOf),
    };
  }
}

/** @param order rows of its kernels */
function sequenceOf(
  { kernels, calls }: InMemoryTrace,
  order: Int32Array,
  names: readonly string[],
  callOf: Int32Array,
): LaunchedKernels {
  const { start_ns: start, dur_ns: dur, shape, shapes } = kernels;
  const { codes, launches } = launchCodes(shapes, names);
  const rows = order.length;
  const code = new Int32Array(rows);
  const startNs = new Float64Array(rows);
  const durNs = new Float64Array(rows);
  for (let n = 0; n < rows; n++) {
    const row = order[n]!;
    code[n] = codes[shape[row]!]!;
    startNs[n] = start[row]!;
    durNs[n] = dur[row]!;
  }
  return {
    kernels: { rows, code, start_ns: startNs, dur_ns: durNs, launches },
    // oxlint-disable-next-line require-await
    async launches(wanted) {
      const found = wanted.map((row) => callOf[order[row]!]!);
      const callColumn = (value: (call: number) => number) =>
        Float64Array.from(found, (call) => (call < 0 ? Number.NaN : value(call)));
      return {
        start_ns: callColumn((call) => calls.start_ns[call]!),
        end_ns: callColumn((call) => calls.start_ns[call]! + calls.dur_ns[call]!),
        tid: callColumn((call) => calls.shapes['tid']![calls.shape[call]!]!),
      };
    },
  };
}

/** Combinations of names and grids. */
function launchCodes(shapes: InMemoryEvents['shapes'], names: readonly string[]) {
  const codeByKey = new Map<string, number>();
  const launches: { name: string; grid: string | null }[] = [];
  const codes = Int32Array.from(shapes['name']!, (name, code) => {
    const grid = shapes['grid']![code]!;
    const key = `${name},${grid}`;
    if (!codeByKey.has(key)) {
      codeByKey.set(key, launches.length);
      launches.push({ name: names[name] ?? '', grid: names[grid] ?? null });
    }
    return codeByKey.get(key)!;
  });
  return { codes, launches };
}

/** The device with the most kernel time of each process, in order of processes; the lowest number on a tie. */
function busiestDevices({ rows, dur_ns: dur, shape, shapes }: InMemoryEvents) {
  const time = new Float64Array(shapes['pid']?.length ?? 0);
  const counts = new Int32Array(time.length);
  for (let i = 0; i < rows; i++) {
    time[shape[i]!]! += dur[i]!;
    counts[shape[i]!]!++;
  }
  const byDevice = new Map<string, { pid: number; device: number; rank: number; rows: number; ns: number }>();
  for (const [code, pid] of (shapes['pid'] ?? new Float64Array()).entries()) {
    const device = shapes['device']![code]!;
    if (Number.isNaN(pid) || Number.isNaN(device) || device < 0) continue;
    const key = `${pid},${device}`;
    const deviceTime = byDevice.get(key) ?? { pid, device, rank: shapes['rank']![code]!, rows: 0, ns: 0 };
    deviceTime.ns += time[code]!;
    deviceTime.rows += counts[code]!;
    byDevice.set(key, deviceTime);
  }
  const sorted = [...byDevice.values()]
    .filter(({ ns }) => ns > 0)
    .toSorted((a, b) => a.pid - b.pid || b.ns - a.ns || a.device - b.device);
  return sorted.filter(({ pid }, i) => i === 0 || sorted[i - 1]!.pid !== pid);
}

/** The ranges of a capture, followed by the inferred ones. Adds their names to `names`. */
export function withInferredRanges(
  ranges: InMemoryRanges,
  inferred: readonly InferredRange[],
  names: string[],
): { ranges: InMemoryRanges; labels: { code: number; label: StageName }[] } {
  if (inferred.length === 0) return { ranges, labels: [] };
  const stageNames = inferredNames(inferred, names.length);
  for (const { code, text } of stageNames.names) names[code] = text;
  const { rows, shapes } = ranges;
  const combinations = shapes['name']!.length;
  const added = new Map<string, number>();
  const columns: Record<string, number[]> = { pid: [], tid: [], rank: [], name: [], process_wide: [] };
  const codes = inferred.map(({ pid, tid, rank }, i) => {
    const name = stageNames.codes[i]!;
    const key = [pid, tid, rank, name].join(',');
    if (!added.has(key)) {
      added.set(key, combinations + added.size);
      for (const [column, value] of Object.entries({ pid, tid, rank, name, process_wide: 1 }))
        columns[column]!.push(value);
    }
    return added.get(key)!;
  });
  const joined = (markedValues: Float64Array, inferredValues: readonly number[]) =>
    Float64Array.from({ length: markedValues.length + inferredValues.length }, (_, i) =>
      i < markedValues.length ? markedValues[i]! : inferredValues[i - markedValues.length]!,
    );
  const shape = new Int32Array(rows + inferred.length);
  shape.set(ranges.shape.subarray(0, rows));
  shape.set(codes, rows);
  return {
    ranges: {
      rows: rows + inferred.length,
      start_ns: joined(
        ranges.start_ns.subarray(0, rows),
        inferred.map(({ startNs }) => startNs),
      ),
      end_ns: joined(
        ranges.end_ns.subarray(0, rows),
        inferred.map(({ endNs }) => endNs),
      ),
      shape,
      shapes: Object.fromEntries(
        Object.entries(columns).map(([name, inferredValues]) => [
          name,
          joined(shapes[name]!, inferredValues),
        ]),
      ),
    },
    labels: stageNames.names,
  };
}
