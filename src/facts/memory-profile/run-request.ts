import { gpuSheet } from '../../hardware/gpu-peaks.js';
import type { Architecture } from '../../llm/architecture.js';
import { requestOfArguments } from '../../llm/memory-engine-args.js';
import type { MemoryEngine, MemoryRequest } from '../../llm/memory-request.js';
import { kvDTypeNamed, schemeNamed, storageOf } from '../../llm/memory-storage.js';
import type { Storage } from '../../llm/storage.js';
import { dtypes, type DType } from '../../model/dtype.js';
import { embeddedStorage } from '../model-work.js';

/** Facts of a run as a session or profile file records them, in the engine's words; null if not recorded. */
interface RunFacts {
  engine: MemoryEngine;
  architecture: Architecture;
  config: Record<string, unknown>;
  /** dtype names, most reliable first: what ran, then what was requested. */
  dtypes: readonly (string | null | undefined)[];
  quantization: string | null;
  kvCacheDtype: string | null;
  /** From the file of an embedded engine. */
  weightBytes: number | null;
  batchSize: number;
  inputLen: number;
  outputLen: number;
  tensorParallelSize: number;
  gpu: { name: string | null; totalBytes: number | null } | null;
  onCpu: boolean;
  randomWeights: boolean;
  usage: 'library' | 'server';
  engineVersion: string | null;
  gpuMemoryUtilization: number | null;
  maxModelLen: number | null;
  engineArgs: Readonly<Record<string, unknown>>;
}

/**
 * The calculator's request for a measured run. `memory` and `validate` both use it.
 * @throws E_DTYPE for an unknown quantization or cache dtype
 */
export function requestOfRun(facts: RunFacts): MemoryRequest {
  const { engine, gpu, gpuMemoryUtilization, maxModelLen } = facts;
  const sheet = gpu === null || gpu.name === null ? null : gpuSheet(gpu.name);
  return {
    engine,
    batchSize: facts.batchSize,
    inputLen: facts.inputLen,
    outputLen: facts.outputLen,
    storage: storageOfRun(facts),
    parallel: { tensor: facts.tensorParallelSize },
    device: facts.onCpu ? 'cpu' : 'gpu',
    gpu: gpu && { ...gpu, architecture: sheet?.architecture ?? null },
    loading: facts.randomWeights ? 'random' : 'checkpoint',
    usage: facts.usage,
    engineVersion: facts.engineVersion,
    ...(gpuMemoryUtilization === null ? {} : { gpuMemoryUtilization }),
    ...(maxModelLen === null ? {} : { maxModelLen }),
    ...requestOfArguments(engine, facts.engineArgs),
  };
}

function storageOfRun({ engine, architecture, config, ...facts }: RunFacts): Storage {
  const dtype = facts.dtypes
    .map((name) => dtypes.find((known) => known === name?.replace(/^torch\./, '')))
    .find((dtype): dtype is DType => dtype !== undefined);
  if (engine === 'onnx' && dtype !== undefined) {
    return embeddedStorage({ dtype, weight_bytes: facts.weightBytes }, architecture);
  }
  const { quantization, kvCacheDtype } = facts;
  return storageOf(config, {
    dtype,
    onCpu: engine === 'onnx',
    quantization: quantization === null ? null : schemeNamed(quantization),
    kvCacheDtype: kvCacheDtype === null ? null : kvDTypeNamed(kvCacheDtype),
  });
}
