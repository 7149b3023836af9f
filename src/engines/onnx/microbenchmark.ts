import { randomBytes } from 'node:crypto';
import { standardDeviation } from '../../model/statistics.js';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { InferenceSession, Tensor } from 'onnxruntime-node';
import { writeOnnx, type OnnxGraph, type OnnxNode, type OnnxTensor, type OnnxValue } from './onnx-file.js';
import { int4Block, randomInt4, randomMatrix } from './random-weights.js';
import { cpuSession, loadOnnxRuntime, type OnnxRuntime } from './runtime.js';

/** One timed kernel of the runtime. The fastest run is the roof; the spread shows the noise. */
export interface Measurement {
  name: string;
  dtype: 'float32' | 'int8';
  shape: string;
  bytes: number;
  flops: number;
  runs: number;
  median_ns: number;
  min_ns: number;
  sd_ns: number;
}

interface Bench {
  ort: OnnxRuntime;
  threads: number;
  /** Folder for the small models; removed by closeBench. */
  folder: string;
}

export async function openBench(threads: number, parent: string): Promise<Bench> {
  return { ort: await loadOnnxRuntime(), threads, folder: await mkdtemp(join(parent, 'bench-')) };
}

export async function closeBench(bench: Bench): Promise<void> {
  await rm(bench.folder, { recursive: true, force: true });
}

/** Times float32 [m,k]×[k,n] with constant random weights, like a linear layer; 2·m·n·k FLOP. */
export async function gemmFloat32(bench: Bench, m: number, k: number, n: number): Promise<Measurement> {
  const weight = randomMatrix('w', 1, k, n, k ** -0.5);
  const graph = graphOf(
    [{ op: 'MatMul', name: 'gemm', inputs: ['a', 'w'], outputs: ['c'] }],
    [weight],
    [m, k],
    [m, n],
  );
  return timeCases(bench, graph, [m, k], {
    name: 'gemm',
    dtype: 'float32',
    shape: `${m}x${n}x${k}`,
    bytes: 4 * (m * k + k * n + m * n),
    flops: 2 * m * n * k,
  });
}

/** The same for int4 weights multiplied in int8 (MatMulNBits, accuracy_level 4), as int4 models run. */
export async function gemmInt8(bench: Bench, m: number, k: number, n: number): Promise<Measurement> {
  const { node, tensors } = int4Gemm('a', 'c', 0, k, n);
  return timeCases(bench, graphOf([node], tensors, [m, k], [m, n]), [m, k], {
    name: 'gemm',
    dtype: 'int8',
    shape: `${m}x${n}x${k}`,
    bytes: 4 * (m * k + m * n) + int4Bytes(k, n),
    flops: 2 * m * n * k,
  });
}

/** uint8 [m,k] × constant int8 [k,n] into int32 (MatMulInteger), as dynamically quantized exports run. */
export async function gemmInteger(bench: Bench, m: number, k: number, n: number): Promise<Measurement> {
  const weight: OnnxTensor = {
    name: 'w',
    type: 'int8',
    shape: [k, n],
    chunks: () => [new Uint8Array(randomBytes(k * n))],
  };
  const graph: OnnxGraph = {
    ...graphOf([{ op: 'MatMulInteger', name: 'gemm', inputs: ['a', 'w'], outputs: ['c'] }], [weight], [], []),
    inputs: [{ name: 'a', type: 'uint8', shape: [m, k] }],
    outputs: [{ name: 'c', type: 'int32', shape: [m, n] }],
  };
  return timeCases(bench, graph, [m, k], {
    name: 'gemm_integer',
    dtype: 'int8',
    shape: `${m}x${n}x${k}`,
    bytes: m * k + k * n + 4 * m * n,
    flops: 2 * m * n * k,
  });
}

/** Side of the square matrices for measuring bandwidth: 4 MiB of float32 each. */
const side = 1024;
const matrixBytes = side * side * 4;

export type WeightStream = Measurement & { batchSize: number; weights: number };

/**
 * Reads `bytes` of float32 weights once per run by [batch, k] × matrix after matrix, like the decode step of a batch.
 * Each matrix has different values: the runtime stores packed weights of equal content once, and 256 MiB of equal
 * content were read at the cache's 41 GB/s instead of memory's 18.
 */
export async function readByGemv(bench: Bench, bytes: number, batchSize = 1): Promise<WeightStream> {
  const count = Math.max(1, Math.round(bytes / matrixBytes));
  const tensors = Array.from({ length: count }, (_, i) => randomMatrix(`w${i}`, 1, side, side, side ** -0.5));
  const nodes = tensors.map((tensor, i): OnnxNode => ({
    op: 'MatMul',
    name: `gemv${i}`,
    inputs: [i === 0 ? 'a' : `y${i - 1}`, tensor.name],
    outputs: [i === count - 1 ? 'c' : `y${i}`],
  }));
  const measured = await timeCases(bench, chain(nodes, tensors, batchSize), [batchSize, side], {
    name: 'read_gemv',
    dtype: 'float32',
    shape: `${count}x${batchSize}x${side}x${side}`,
    bytes: count * matrixBytes,
    flops: count * batchSize * 2 * side * side,
  });
  return { ...measured, batchSize, weights: count * side * side };
}

function chain(nodes: OnnxNode[], tensors: OnnxTensor[], batchSize: number): OnnxGraph {
  return graphOf(nodes, tensors, [batchSize, side], [batchSize, side]);
}

/** The same with int4 weights: the rate at which the runtime reads quantized weights. */
export async function readByInt4Gemv(bench: Bench, bytes: number, batchSize = 1): Promise<WeightStream> {
  const count = Math.max(1, Math.round(bytes / int4Bytes(side, side)));
  const gemms = Array.from({ length: count }, (_, i) =>
    int4Gemm(i === 0 ? 'a' : `y${i - 1}`, i === count - 1 ? 'c' : `y${i}`, i, side, side),
  );
  const graph = chain(
    gemms.map(({ node }) => node),
    gemms.flatMap(({ tensors }) => tensors),
    batchSize,
  );
  const measured = await timeCases(bench, graph, [batchSize, side], {
    name: 'read_gemv_int4',
    dtype: 'int8',
    shape: `${count}x${batchSize}x${side}x${side}`,
    bytes: count * int4Bytes(side, side),
    flops: count * batchSize * 2 * side * side,
  });
  return { ...measured, batchSize, weights: count * side * side };
}

/** Reads a float32 array of `bytes` for its maximum, with the least arithmetic per read; on one core only. */
export async function readByReduce(bench: Bench, bytes: number): Promise<Measurement> {
  const elements = Math.round(bytes / 4);
  const graph = graphOf(
    [{ op: 'ReduceMax', name: 'max', inputs: ['a'], outputs: ['c'], attributes: { keepdims: { int: 0 } } }],
    [],
    [elements],
    [],
  );
  return timeCases(bench, graph, [elements], {
    name: 'read_max',
    dtype: 'float32',
    shape: `${elements}`,
    bytes: elements * 4,
    flops: 0,
  });
}

function int4Bytes(k: number, n: number): number {
  return n * (k / 2 + (k / int4Block) * 4);
}

function int4Gemm(input: string, output: string, index: number, k: number, n: number) {
  const { quantized, scales } = randomInt4(`w${index}`, `w${index}`, 1, n, k, k ** -0.5);
  const node: OnnxNode = {
    op: 'MatMulNBits',
    domain: 'com.microsoft',
    name: `int4_${index}`,
    inputs: [input, quantized.name, scales.name],
    outputs: [output],
    attributes: {
      K: { int: k },
      N: { int: n },
      bits: { int: 4 },
      block_size: { int: int4Block },
      accuracy_level: { int: 4 },
    },
  };
  return { node, tensors: [quantized, scales] };
}

function graphOf(nodes: OnnxNode[], tensors: OnnxTensor[], input: number[], output: number[]): OnnxGraph {
  const value = (name: string, shape: number[]): OnnxValue => ({ name, type: 'float32', shape });
  return {
    name: 'microbenchmark',
    nodes,
    tensors,
    inputs: [value('a', input)],
    outputs: [value('c', output)],
    metadata: {},
  };
}

/** Time for each case, so that cases of 0.2 ms and of 200 ms are both measured precisely. */
const budgetNs = 400e6;
const minRuns = 5;
const maxRuns = 200;

async function timeCases(
  bench: Bench,
  graph: OnnxGraph,
  inputShape: number[],
  benchCase: Omit<Measurement, 'runs' | 'median_ns' | 'min_ns' | 'sd_ns'>,
): Promise<Measurement> {
  const { ort, threads, folder } = bench;
  await writeOnnx(folder, 'model.onnx', graph);
  const session = await ort.InferenceSession.create(join(folder, 'model.onnx'), cpuSession(threads));
  const outputShape = graph.outputs[0]!.shape as number[];
  const size = (shape: number[]) => shape.reduce((product, dimension) => product * dimension, 1);
  const isFloat = graph.inputs[0]!.type === 'float32';
  const feeds = {
    a: isFloat
      ? new ort.Tensor('float32', randomValues(size(inputShape)), inputShape)
      : new ort.Tensor('uint8', new Uint8Array(randomBytes(size(inputShape))), inputShape),
  };
  // Preallocated outputs are not reallocated in each run.
  const fetches = {
    c: isFloat
      ? new ort.Tensor('float32', new Float32Array(size(outputShape)), outputShape)
      : new ort.Tensor('int32', new Int32Array(size(outputShape)), outputShape),
  };
  const durations = await repeat(session, feeds, fetches);
  await session.release();
  durations.sort((x, y) => x - y);
  return {
    ...benchCase,
    runs: durations.length,
    median_ns: durations[durations.length >> 1]!,
    min_ns: durations[0]!,
    sd_ns: standardDeviation(durations),
  };
}

async function repeat(
  session: InferenceSession,
  feeds: Record<string, Tensor>,
  fetches: Record<string, Tensor>,
): Promise<number[]> {
  const durations: number[] = [];
  let spentNs = 0;
  for (let run = -2; run < maxRuns && (run < minRuns || spentNs < budgetNs); run++) {
    const start = process.hrtime.bigint();
    await session.run(feeds, fetches as unknown as InferenceSession.FetchesType);
    const ns = Number(process.hrtime.bigint() - start);
    if (run < 0) continue;
    durations.push(ns);
    spentNs += ns;
  }
  return durations;
}

/** Random instead of zeros, because data affects power and clocks. */
function randomValues(length: number): Float32Array {
  const values = new Float32Array(length);
  let state = 0x2545f491;
  for (let i = 0; i < length; i++) {
    // xorshift32 (Marsaglia 2003)
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    values[i] = state / 2 ** 31;
  }
  return values;
}
