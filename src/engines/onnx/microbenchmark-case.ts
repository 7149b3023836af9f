import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';
import type { InferenceSession, Tensor } from 'onnxruntime-node';
import { kernelWork } from '../../llm/kernel-work.js';
import {
  kernelNames,
  type KernelCase,
  type KernelName,
  type KernelOrder,
  type KernelTrace,
} from '../../model/kernels.js';
import type { MicrobenchmarkLine } from '../../model/record.js';
import { mean, standardDeviation } from '../../model/statistics.js';
import { constant, type HostArray, sizeOf } from './microbenchmark-arrays.js';
import { kernelNodes, type KernelNodes } from './microbenchmark-kernels.js';
import { writeOnnx, type OnnxGraph } from './onnx-file.js';
import { cpuSession, type OnnxRuntime } from './runtime.js';
import { formatNumber } from '../../vocabulary/format.js';

export interface CaseSettings extends Pick<
  KernelOrder,
  'runs' | 'max_runs' | 'max_seconds' | 'target_half_width' | 'check' | 'graph' | 'trace'
> {
  threads: number;
  /** One graph has copies of the operation until their arrays take this much: 2 × the last-level cache, at most 128 MiB. */
  rotateBytes: number;
  /** Folder for the model. */
  scratch: string;
  stopped: () => boolean;
}

/** Fields of a record line for a measured case. */
type CaseResult = Pick<
  MicrobenchmarkLine,
  | 'outcome'
  | 'text'
  | 't_ns'
  | 'end_ns'
  | 'samples_ns'
  | 'method'
  | 'per_sample'
  | 'rotated_bytes'
  | 'max_error'
  | 'threads'
>;

/** More copies would only lengthen the list of arrays of a run. */
const maxCopies = 32;
/** Half of the possible sum of a thousand float32 roundings, 2^-24 each; fused kernels also approximate exp and erf. */
const tolerance = 3e-5;
const checkedElements = 256;
/** A larger reference takes minutes in float64. */
const maxReferenceFlops = 2e9;

/**
 * Times one operation through ONNX Runtime on the CPU. One call runs several copies with separate arrays, so that
 * caches contain none of them and the call's overhead is shared, as in a model's graph. On a CPU only the runtime's
 * float32 kernels are used.
 */
export async function measureCase(
  ort: OnnxRuntime,
  kernelCase: KernelCase,
  settings: CaseSettings,
): Promise<CaseResult> {
  const now = Number(process.hrtime.bigint());
  const empty = {
    t_ns: now,
    end_ns: now,
    samples_ns: [],
    method: 'host' as const,
    per_sample: 1,
    max_error: null,
  };
  const none = { ...empty, rotated_bytes: null, threads: settings.threads };
  const kernel = kernelNames.find((name) => name === kernelCase.kernel);
  const why = kernel ? unsupportedReason(kernel, kernelCase) : `it has no ${kernelCase.kernel}`;
  if (why !== null) return { ...none, outcome: 'unsupported', text: `ONNX Runtime on the CPU: ${why}` };
  const folder = await mkdtemp(join(settings.scratch, 'kernel-'));
  try {
    const measured = await timeCase(ort, kernel!, kernelCase, settings, folder);
    if (settings.trace && measured.outcome === 'measured')
      await profileCase(ort, kernel!, kernelCase, settings, settings.trace);
    return measured;
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return {
      ...none,
      outcome: /alloc|memory/i.test(text) ? 'out_of_memory' : 'failed',
      text: text.split('\n')[0]!,
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function unsupportedReason(kernel: KernelName, { dtype, backend, params }: KernelCase): string | null {
  if (dtype !== 'float32') return `only float32 is measured, because it has no ${dtype} kernels`;
  if (backend !== null) return `it has a single attention kernel, no ${backend}`;
  if (kernel === 'attention' && params['context']! < params['new_tokens']!)
    return 'no window inside the new tokens';
  return null;
}

/** The runtime appends the time to a profile's name; the case comes before it. */
const profilePrefix = 'case-';
const traceFileOf = (kernelCaseId: Pick<KernelCase, 'case'>): string =>
  `${profilePrefix}${encodeURIComponent(kernelCaseId.case)}`;

/** The case of a profile file; null for other files. */
export function caseOfTraceFile(name: string): string | null {
  const match = /^case-(.+)_\d{4}-\d{2}-\d{2}_\d{2}-\d{2}-\d{2}\S*\.json$/.exec(name);
  return match ? decodeURIComponent(match[1]!) : null;
}

/**
 * Runs one copy a few more times under the runtime's profiler, in a separate session, because profiling slows it down.
 */
async function profileCase(
  ort: OnnxRuntime,
  kernel: KernelName,
  kernelCase: KernelCase,
  settings: CaseSettings,
  { folder, runs }: KernelTrace,
): Promise<void> {
  const copies = [kernelNodes(kernel, kernelCase.params, 'c0_')];
  const model = await mkdtemp(join(settings.scratch, 'traced-'));
  try {
    await writeOnnx(model, 'model.onnx', graphOf(copies));
    const session = await ort.InferenceSession.create(join(model, 'model.onnx'), {
      ...cpuSession(settings.threads),
      enableProfiling: true,
      profileFilePrefix: join(folder, traceFileOf(kernelCase)),
    });
    const { feeds, fetches } = tensorsOf(ort, copies);
    for (let run = 0; run < runs; run++)
      await session.run(feeds, fetches as unknown as InferenceSession.FetchesType);
    session.endProfiling();
    await session.release();
  } finally {
    await rm(model, { recursive: true, force: true });
  }
}

async function timeCase(
  ort: OnnxRuntime,
  kernel: KernelName,
  kernelCase: KernelCase,
  settings: CaseSettings,
  folder: string,
): Promise<CaseResult> {
  const count = copiesOf(kernel, kernelCase, settings);
  const copies = Array.from({ length: count }, (_, copy) =>
    kernelNodes(kernel, kernelCase.params, `c${copy}_`),
  );
  await writeOnnx(folder, 'model.onnx', graphOf(copies));
  const path = join(folder, 'model.onnx');
  const session = await ort.InferenceSession.create(path, cpuSession(settings.threads));
  try {
    const { feeds, fetches } = tensorsOf(ort, copies);
    const run = () => session.run(feeds, fetches as unknown as InferenceSession.FetchesType);
    await run();
    const error = settings.check
      ? largestError(kernelCase, copies[0]!, fetches[copies[0]!.output.name]!)
      : null;
    const t_ns = Number(process.hrtime.bigint());
    const samples = await repeat(run, count, settings);
    const end_ns = Number(process.hrtime.bigint());
    const isWrong = error !== null && !(error <= tolerance);
    return {
      outcome: samples.length === 0 ? 'stopped' : isWrong ? 'wrong' : 'measured',
      text: isWrong
        ? `off by ${formatNumber(error)} of the largest value; at most ${tolerance} is rounding`
        : null,
      t_ns,
      end_ns,
      samples_ns: samples,
      method: count > 1 ? 'graph' : 'host',
      per_sample: count,
      rotated_bytes: count > 1 ? count * kernelCase.bytes : null,
      max_error: error,
      threads: settings.threads,
    };
  } finally {
    await session.release();
  }
}

/** Copies until the arrays take `rotateBytes`; an embedding's table is shared by all copies, as in a model. */
function copiesOf(
  kernel: KernelName,
  { dtype, params, bytes }: KernelCase,
  { graph, rotateBytes }: CaseSettings,
): number {
  if (graph === 'never') return 1;
  const each = kernel === 'embedding' ? bytes : kernelWork(kernel, dtype, params).footprintBytes;
  return Math.min(maxCopies, Math.max(1, Math.ceil(rotateBytes / each)));
}

function graphOf(copies: readonly KernelNodes[]): OnnxGraph {
  const inputs = new Map(copies.flatMap((nodes) => nodes.inputs.map((input) => [input.name, input])));
  return {
    name: 'kernel',
    nodes: copies.flatMap(({ nodes }) => nodes),
    tensors: copies.flatMap(({ constants }) => constants.map(constant)),
    inputs: [...inputs.values()].map(({ name, type, shape }) => ({ name, type, shape })),
    outputs: copies.flatMap(({ output, inPlace }) => [output, ...inPlace.map((written) => written.output)]),
    metadata: {},
  };
}

/**
 * Operators write into preallocated outputs; a KV cache is input and output in one. onnxruntime-node returns a copy of each
 * output all the same (src/capture/bench/copied-cache.ts).
 */
function tensorsOf(ort: OnnxRuntime, copies: readonly KernelNodes[]) {
  const feeds: Record<string, Tensor> = {};
  const fetches: Record<string, Tensor> = {};
  const tensor = ({ type, data, shape }: Pick<HostArray, 'type' | 'data' | 'shape'>): Tensor =>
    new ort.Tensor(type, data as Float32Array, shape);
  const empty = (type: string, shape: number[]) =>
    type === 'int64'
      ? tensor({ type: 'int64', data: new BigInt64Array(sizeOf(shape)), shape })
      : tensor({ type: 'float32', data: new Float32Array(sizeOf(shape)), shape });
  for (const { inputs, output, inPlace } of copies) {
    for (const input of inputs) feeds[input.name] ??= tensor(input);
    fetches[output.name] = empty(output.type, output.shape);
    for (const { output: cache, input } of inPlace)
      fetches[cache.name] = feeds[input] ?? empty(cache.type, cache.shape);
  }
  return { feeds, fetches };
}

/**
 * Largest |x − reference| of elements spread over the output, relative to the largest |reference|; an index must be
 * equal.
 */
function largestError(
  kernelCase: KernelCase,
  { expected, output }: KernelNodes,
  actual: Tensor,
): number | null {
  if (kernelCase.flops > maxReferenceFlops && kernelCase.kernel === 'lstm') return null;
  const total = sizeOf(output.shape);
  const step = Math.max(1, Math.floor(total / checkedElements));
  let [error, largest] = [0, 0];
  const data = actual.data as unknown as ArrayLike<number | bigint>;
  for (let index = 0; index < total; index += step) {
    const reference = expected(index);
    error = Math.max(error, Math.abs(Number(data[index]) - reference));
    largest = Math.max(largest, Math.abs(reference));
    if (Number.isNaN(Number(data[index]))) return Infinity;
  }
  return largest === 0 ? error : error / largest;
}

/**
 * Repeats until there are enough runs and the interval of the mean is narrow, or the time is over; at least three. ns
 * per operation.
 */
async function repeat(
  run: () => Promise<unknown>,
  count: number,
  { runs, max_runs, max_seconds, target_half_width, stopped }: CaseSettings,
): Promise<number[]> {
  const samples: number[] = [];
  let spentNs = 0;
  for (let warmup = 0; warmup < 3 && spentNs < max_seconds * 1e8; warmup++) spentNs += await timeOf(run);
  spentNs = 0;
  while (samples.length < max_runs && !stopped()) {
    // The interval is checked every tenth run, because computing it takes time between runs.
    const n = samples.length;
    const isNarrow = n >= runs && n % 10 === 0 && halfInterval(samples) <= target_half_width;
    if (n >= 3 && (isNarrow || spentNs >= max_seconds * 1e9)) break;
    const ns = await timeOf(run);
    spentNs += ns;
    samples.push(ns / count);
  }
  return samples;
}

async function timeOf(run: () => Promise<unknown>): Promise<number> {
  const start = process.hrtime.bigint();
  await run();
  return Number(process.hrtime.bigint() - start);
}

/** Half of the 95 % interval of the mean, as a share of it; z = 1.96 replaces t for many runs. */
function halfInterval(samples: readonly number[]): number {
  return (1.96 * standardDeviation(samples)) / Math.sqrt(samples.length) / mean(samples);
}
