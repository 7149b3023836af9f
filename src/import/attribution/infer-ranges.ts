import { stepKinds } from '../../model/record.js';
import { isTraining } from '../kernel-classes/training.js';
import type { StageName } from '../stage-names.js';
import { type InferredStep, inferSteps, noSeparator, separatesSteps } from './inferred-steps.js';
import type { KernelSequence } from './launch-roles.js';

/** Kernels of a process on its busiest device. They are read only where its marks do not contain its work. */
export interface ProcessKernels {
  pid: number;
  rank: number;
  rows: number;
  /** About one kernel in `stride`, in any order. */
  sample(stride: number): Promise<SampledKernels>;
  sequence(): Promise<LaunchedKernels>;
}

export interface SampledKernels {
  dur_ns: Float64Array;
  /** Start of the call that launched it; of the kernel if none was recorded. */
  called_ns: Float64Array;
}

export interface LaunchedKernels {
  kernels: KernelSequence;
  /** First call that launched each of these kernels; NaN if none was recorded. */
  launches(rows: readonly number[]): Promise<LaunchCalls>;
}

/** Calls in the order of the requested rows. */
type LaunchCalls = Record<'start_ns' | 'end_ns' | 'tid', Float64Array>;

/** A marked range, with the information from its name. */
export interface MarkedRange {
  pid: number;
  startNs: number;
  endNs: number;
  label: StageName;
}

/** A capture, in arrays or in tables. */
interface InferenceSource {
  /** Distinct names of kernels. */
  kernelNames: readonly string[];
  /** Distinct names of ranges. */
  rangeNames: readonly string[];
  /** Ranges that `isMark` accepts. */
  marks(isMark: (label: StageName) => boolean): Promise<MarkedRange[]>;
  processes(): AsyncIterable<ProcessKernels>;
}

/** A range for an inferred step, which belongs to its process. */
export interface InferredRange {
  pid: number;
  tid: number;
  rank: number;
  startNs: number;
  endNs: number;
  name: string;
  label: StageName;
}

export interface Inference {
  ranges: InferredRange[];
  /** Whether numbered steps of unknown kind are training steps. */
  training: boolean;
  /** Why no steps were inferred; null if some were, or if the program marks its steps and its kernels could separate them. */
  why: string | null;
}

/** About this many kernels are looked up to see whether marked steps contain the device's work: the share is then known to 2 %. */
const sampledKernels = 2000;
/** Share of the kernel time from which marked steps are the program's steps. */
const minMarked = 0.1;

const isStep = ({ kind, step_index: step, warmup }: StageName): boolean =>
  !warmup && ([...stepKinds, 'training'].includes(kind) || (kind === 'other' && step !== null));
const isPreparation = ({ kind, warmup }: StageName): boolean =>
  warmup || kind === 'load' || kind === 'warmup';

/**
 * Ranges of the steps of a program that marks none, or only some in which the device is almost idle. Work inside marked
 * loading and warm-up is not a step.
 */
export async function inferRanges(source: InferenceSource): Promise<Inference> {
  const training = isTraining(source.kernelNames, source.rangeNames);
  const inference: Inference = { ranges: [], training, why: null };
  if (!separatesSteps(source.kernelNames)) return { ...inference, why: noSeparator };
  const steps = await source.marks(isStep);
  let preparation: MarkedRange[] | null = null;
  for await (const process of source.processes()) {
    const processSteps = steps.filter(({ pid }) => pid === process.pid);
    if (processSteps.length > 0 && (await measureMarkedShare(process, processSteps)) >= minMarked) continue;
    const launched = await process.sequence();
    const inferred = inferSteps(launched.kernels);
    if ('why' in inferred) {
      inference.why ??= inferred.why;
      continue;
    }
    preparation ??= await source.marks(isPreparation);
    const recordedMarks = [...processSteps, ...preparation.filter(({ pid }) => pid === process.pid)];
    const ranges = await findHostRanges(process, launched, inferred.steps, inferred.confidence);
    if (!ranges) {
      inference.why ??= 'the launches of one step overlap those of the next';
      continue;
    }
    inference.ranges.push(
      ...ranges.filter(({ startNs, endNs }) =>
        recordedMarks.every((mark) => mark.endNs <= startNs || mark.startNs >= endNs),
      ),
    );
  }
  if (inference.ranges.length > 0) inference.why = null;
  return inference;
}

/** Share of the kernel time that was launched in marked ranges. */
async function measureMarkedShare(process: ProcessKernels, marks: readonly MarkedRange[]): Promise<number> {
  const sample = await process.sample(Math.ceil(process.rows / sampledKernels));
  const sorted = marks.toSorted((a, b) => a.startNs - b.startNs);
  const latestEnds = sorted.map(({ endNs }) => endNs);
  for (let i = 1; i < latestEnds.length; i++) latestEnds[i] = Math.max(latestEnds[i]!, latestEnds[i - 1]!);
  let inside = 0;
  let total = 0;
  for (const [i, ns] of sample.called_ns.entries()) {
    let low = 0;
    let high = sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle]!.startNs <= ns) low = middle + 1;
      else high = middle;
    }
    total += sample.dur_ns[i]!;
    if (low > 0 && latestEnds[low - 1]! >= ns) inside += sample.dur_ns[i]!;
  }
  return total > 0 ? inside / total : 0;
}

/**
 * On the host a step lasts from its first launch to the first launch after it, or to the end of its last launch if none follows; null if
 * these are not in order.
 */
async function findHostRanges(
  process: Pick<ProcessKernels, 'pid' | 'rank'>,
  { kernels, launches }: LaunchedKernels,
  steps: readonly InferredStep[],
  confidence: number,
): Promise<InferredRange[] | null> {
  const { rows, start_ns: start, dur_ns: dur } = kernels;
  const firsts = steps.map(({ first }) => first);
  const nexts = steps.map(({ last }) => Math.min(last + 1, rows - 1));
  const lasts = steps.map(({ last }) => last);
  const calls = await launches([...firsts, ...nexts, ...lasts]);
  const n = steps.length;
  const launchStart = (i: number, row: number) => {
    const called = calls.start_ns[i]!;
    return Number.isNaN(called) ? start[row]! : called;
  };
  const ranges: InferredRange[] = [];
  for (const [i, step] of steps.entries()) {
    const startNs = launchStart(i, step.first);
    const called = calls.end_ns[2 * n + i]!;
    const finished = Number.isNaN(called) ? start[step.last]! + dur[step.last]! : called;
    const endNs = step.last + 1 < rows ? launchStart(n + i, step.last + 1) : finished;
    if (!(endNs > startNs) || (ranges.length > 0 && startNs < ranges.at(-1)!.endNs)) return null;
    const { kind, tokens } = step;
    ranges.push({
      pid: process.pid,
      tid: calls.tid[i]!,
      rank: process.rank,
      startNs,
      endNs,
      name: `${kind === 'other' ? 'step' : kind} (inferred)`,
      label: {
        kind,
        iteration: null,
        step_index: null,
        // A decode step computes one token per sequence.
        batch_size: kind === 'decode' ? tokens : null,
        new_tokens: tokens,
        context_tokens_sum: null,
        warmup: false,
        hook: null,
        library: false,
        confidence,
      },
    });
  }
  return ranges;
}

/** Distinct inferred names and labels, numbered from `firstCode` on, and the code of each range. */
export function inferredNames(
  ranges: readonly InferredRange[],
  firstCode: number,
): { codes: number[]; names: { code: number; text: string; label: StageName }[] } {
  const names: { code: number; text: string; label: StageName }[] = [];
  const codeByKey = new Map<string, number>();
  const codes = ranges.map(({ name, label }) => {
    const key = JSON.stringify([name, label]);
    if (!codeByKey.has(key)) {
      codeByKey.set(key, firstCode + names.length);
      names.push({ code: firstCode + names.length, text: name, label });
    }
    return codeByKey.get(key)!;
  });
  return { codes, names };
}

/** Information from the names of ranges, including inferred ones. */
export function stageLabels(
  stageNameOf: (code: number) => StageName,
  training: boolean,
  inferred: readonly { code: number; label: StageName }[],
): (code: number) => StageName {
  const inferredLabels = new Map(inferred.map(({ code, label }) => [code, label]));
  return (code) => {
    const label = inferredLabels.get(code) ?? stageNameOf(code);
    return training && label.kind === 'other' && label.step_index !== null
      ? { ...label, kind: 'training' }
      : label;
  };
}
