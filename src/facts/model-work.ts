import type { Architecture } from '../llm/architecture.js';
import { knownEngine } from '../llm/memory-request.js';
import { configOfWeights } from '../llm/config-of-weights.js';
import { isKnownFamily, readAnyArchitecture } from '../llm/read-architecture.js';
import type { NecessaryOp } from '../llm/necessary-op.js';
import { countParameters } from '../llm/parameters.js';
import { quantizedTensors } from '../model/quantized-tensors.js';
import { kvDTypeNamed, schemeNamed, storageOf, storedAs } from '../llm/memory-storage.js';
import { declaredDType, declaredWeights } from '../llm/quantization.js';
import type { StageShape } from '../llm/shape.js';
import { blocks, floatStorage, type Storage } from '../llm/storage.js';
import { stageWork } from '../llm/work.js';
import { bytesPerElement, type DType, dtypes } from '../model/dtype.js';
import { InferscopeError } from '../model/errors.js';
import { missing, type MissingFigure } from '../model/figure.js';
import type { Workload } from '../model/manifest.js';
import { formatSetting } from '../vocabulary/format.js';

export interface WorkloadModel {
  architecture: Architecture;
  storage: Storage;
}

/**
 * The config that a model's work is computed from: its own, or one derived from the shapes of its weights if its own
 * names an unknown family.
 */
export function arithmeticConfig({
  config,
  tensors = [],
}: Pick<NonNullable<Workload['model']>, 'config' | 'tensors'>): {
  config: Record<string, unknown>;
  fromShapes: boolean;
} {
  const inferred = isKnownFamily(config) ? null : configOfWeights(tensors);
  return { config: inferred ?? config, fromShapes: inferred !== null };
}

/** Dimensions of the session's model; missing, with the reason, when the family is not known. */
export function workloadArchitecture({ model }: Workload): Architecture | MissingFigure {
  if (!model) return missing('no_model', 'the workload does not record its model');
  const { config } = arithmeticConfig(model);
  if (Object.keys(config).length === 0)
    return missing(
      'unknown_architecture',
      `${model.name} is not a known model family (name the model with --model)`,
    );
  try {
    return readAnyArchitecture(config);
  } catch (error) {
    if (error instanceof InferscopeError)
      return missing('unknown_architecture', `${error.parts.what} (name the model with --model)`);
    throw error;
  }
}

/**
 * Architecture and storage of the session's model; missing, with the reason, when its arithmetic is not known.
 * ONNX Runtime on the CPU computes float16 exports in float32; other engines compute in what they store.
 */
export function workloadModel(workload: Workload): WorkloadModel | MissingFigure {
  const architecture = workloadArchitecture(workload);
  if ('reason' in architecture) return architecture;
  const storage =
    knownEngine(workload.engine.name) === 'onnx'
      ? embeddedStorage(workload.model!, architecture)
      : engineStorage(workload);
  return 'reason' in storage ? storage : { architecture, storage };
}

/** As workloadModel, for what is computed of decoders only: sizes that are not those of recorded steps. */
export function decoderModel(workload: Workload): WorkloadModel | MissingFigure {
  const model = workloadModel(workload);
  return 'architecture' in model && model.architecture.encoder
    ? missing('unknown_architecture', 'it is not computed for encoder-decoder models')
    : model;
}

/**
 * Storage of vLLM, transformers and other engines with float activations: the checkpoint's `quantization_config`, else
 * the requested quantization, else the dtypes of the tensors in memory, else the dtype that ran. The KV cache is stored as
 * `kv_cache_dtype` says, else in the dtype that ran.
 */
function engineStorage({ model, engine }: Workload): Storage | MissingFigure {
  const { quantization } = model!;
  const { config } = arithmeticConfig(model!);
  const dtypeRun = dtypes.find((dtype) => dtype === model!.dtype) ?? declaredDType(config);
  if (dtypeRun === null) {
    const recorded = model!.dtype === 'unknown' ? '' : `, only as "${model!.dtype}"`;
    return missing('no_dtype', `the dtype of the model is not recorded${recorded} (add it with --dtype)`);
  }
  const inMemory = quantization === null ? quantizedTensors(model!.tensors ?? [], model!.dtype) : null;
  const kvCacheDtype = engine.options['kv_cache_dtype'];
  const unknownStorage = (setting: string) =>
    missing('unknown_storage', `it is not known how this engine stores and computes ${setting}`);
  const hasQuantizationConfig = 'quantization_config' in config;
  const declared = isFloat(dtypeRun) ? declaredWeights({ ...config, torch_dtype: dtypeRun }) : null;
  if (hasQuantizationConfig && isFloat(dtypeRun) && declared === null)
    return unknownStorage("the config's quantization_config");
  try {
    const storage = storageOf(config, {
      dtype: dtypeRun,
      quantization: hasQuantizationConfig || quantization === null ? null : schemeNamed(quantization),
      kvCacheDtype: typeof kvCacheDtype === 'string' ? kvDTypeNamed(kvCacheDtype) : null,
    });
    if (hasQuantizationConfig) return declared !== null ? { ...storage, weights: declared } : storage;
    if (inMemory === null) return storage;
    const linear = { bytesPerWeight: inMemory.bytesPerWeight, scale: null };
    return { ...storage, weights: { ...storage.weights, name: inMemory.name, linear } };
  } catch (error) {
    if (error instanceof InferscopeError) return unknownStorage(quantization ?? String(kvCacheDtype));
    throw error;
  }
}

const isFloat = (dtype: DType): boolean => dtype === 'float32' || dtype === 'float16' || dtype === 'bfloat16';

/**
 * Storage of the embedded engine: activations, norms and KV cache in float32; int4 weights in blocks of 32, multiplied
 * in int8. Exports with other quantizations spread their file's bytes over the parameters; without a file's size, each
 * parameter takes the bytes of its dtype.
 */
export function embeddedStorage(
  model: Pick<NonNullable<Workload['model']>, 'dtype' | 'weight_bytes'>,
  architecture: Architecture,
): Storage {
  const float32 = floatStorage('float32');
  if (model.dtype === 'float32') return float32;
  if (model.dtype === 'int4') return { ...float32, ...storedAs('int4', 'float32', true) };
  const parameters = countParameters(architecture).total;
  const namedDtype = dtypes.find((dtype) => dtype === model.dtype);
  const fileBytes = model.weight_bytes;
  const bytesPerWeight = fileBytes === null ? bytesPerElement[namedDtype ?? 'int8'] : fileBytes / parameters;
  const format = { ...blocks(bytesPerWeight, Infinity, 0), scale: null };
  return {
    ...float32,
    weights: {
      name: `${model.dtype} (${formatSetting(bytesPerWeight, 'bytes')} per weight${fileBytes === null ? '' : ', from the file'})`,
      linear: format,
      lmHead: format,
      embedding: format,
      rest: 'float32',
      compute: model.dtype === 'int8' ? 'int8' : null,
    },
  };
}

/** Necessary operations of a stage, without sampling, which is a separate stage. */
export function necessaryOps({ architecture, storage }: WorkloadModel, shape: StageShape): NecessaryOp[] {
  return stageWork(architecture, shape, storage);
}
