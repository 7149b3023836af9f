import { type Architecture, readArchitecture } from '../llm/architecture.js';
import type { NecessaryOp } from '../llm/necessary-op.js';
import { countParameters } from '../llm/parameters.js';
import { quantizedWeights } from '../llm/quantization.js';
import type { StageShape } from '../llm/shape.js';
import { blocks, floatStorage, type Storage } from '../llm/storage.js';
import { stageWork } from '../llm/work.js';
import { type DType, dtypes } from '../model/dtype.js';
import { InferscopeError } from '../model/errors.js';
import { missing, type MissingFigure } from '../model/figure.js';
import type { Workload } from '../model/manifest.js';

export interface WorkloadModel {
  architecture: Architecture;
  storage: Storage;
}

/** Architecture and storage of the session's model; missing, with the reason, when its arithmetic is not known. */
export function workloadModel(workload: Workload): WorkloadModel | MissingFigure {
  const { model } = workload;
  if (!model) return missing('no_model', 'the workload did not say which model it ran');
  try {
    const architecture = readArchitecture(model.config);
    const stored = dtypes.find((one) => one === model.dtype);
    // ONNX Runtime on the CPU computes float16 exports in float32; other engines compute in what they store.
    if (!workload.engine.name.startsWith('onnx') && model.quantization === null && isFloat(stored)) {
      return { architecture, storage: floatStorage(stored) };
    }
    return { architecture, storage: embeddedStorage(model, architecture) };
  } catch (error) {
    if (error instanceof InferscopeError) return missing('unknown_architecture', error.parts.what);
    throw error;
  }
}

const isFloat = (dtype: DType | undefined): dtype is DType =>
  dtype === 'float32' || dtype === 'float16' || dtype === 'bfloat16';

/**
 * What the embedded engine computes with: activations, norms and KV cache in float32; int4 weights in blocks of 32 and
 * multiplied in int8. Exports of other quantisations count their file's bytes, spread over their parameters.
 */
export function embeddedStorage(
  model: Pick<NonNullable<Workload['model']>, 'dtype' | 'weight_bytes'>,
  architecture: Architecture,
): Storage {
  const float32 = floatStorage('float32');
  if (model.dtype === 'float32') return float32;
  if (model.dtype === 'int4') {
    return { ...float32, weights: { ...quantizedWeights('matmulnbits-int4', 'float32'), compute: 'int8' } };
  }
  const parameters = countParameters(architecture).total;
  const bytesPerWeight = model.weight_bytes === null ? 1 : model.weight_bytes / parameters;
  const format = { ...blocks(bytesPerWeight, Infinity, 0), scale: null };
  return {
    ...float32,
    weights: {
      name: `${model.dtype} (${bytesPerWeight.toFixed(2)} bytes a weight, from the file)`,
      linear: format,
      lmHead: format,
      embedding: format,
      rest: 'float32',
      compute: model.dtype === 'int8' ? 'int8' : null,
    },
  };
}

/** Necessary operations of a stage; sampling has a stage of its own. */
export function necessaryOps({ architecture, storage }: WorkloadModel, shape: StageShape): NecessaryOp[] {
  return stageWork(architecture, shape, storage).filter((op) => op.class !== 'sampling');
}
