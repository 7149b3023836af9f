import { gpuSheet } from '../../hardware/gpu-peaks.js';
import type { Architecture } from '../../llm/architecture.js';
import { requestOfArguments } from '../../llm/memory-engine-args.js';
import type { MemoryEngine, MemoryRequest } from '../../llm/memory-request.js';
import { kvDTypeNamed, schemeNamed, storageOf } from '../../llm/memory-storage.js';
import type { Storage } from '../../llm/storage.js';
import { dtypes, type DType } from '../../model/dtype.js';
import { embeddedStorage } from '../model-work.js';

/** What a session or a profile file records of a run, in the engines' own words; null where it does not. */
interface RunFacts {
  engine: MemoryEngine;
  architecture: Architecture;
  config: Record<string, unknown>;
  /** Names in order of trust: what ran goes before what was asked for. */
  dtypes: readonly (string | null | undefined)[];
  quantization: string | null;
  kvCacheDtype: string | null;
  /** Of the file of an embedded engine. */
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
 * What the calculator is asked of a run that was measured: the same for the column next to a measurement and for
 * `validate` of its file.
 * @throws E_DTYPE for a quantization or cache dtype that is not known
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
    .map((name) => dtypes.find((one) => one === name?.replace(/^torch\./, '')))
    .find((one): one is DType => one !== undefined);
  if (engine === 'onnx' && dtype !== undefined) {
    return embeddedStorage({ dtype, weight_bytes: facts.weightBytes }, architecture);
  }
  const { quantization, kvCacheDtype } = facts;
  return storageOf(config, {
    dtype,
    quantization: quantization === null ? null : schemeNamed(quantization),
    kvCacheDtype: kvCacheDtype === null ? null : kvDTypeNamed(kvCacheDtype),
  });
}
