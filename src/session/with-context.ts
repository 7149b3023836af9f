import { type Context, givenParts } from '../model/context.js';
import type { Workload } from '../model/manifest.js';

const unknownWorkload: Workload = {
  model: null,
  engine: { name: 'unknown', version: null, options: {} },
  device: 'cuda',
  threads: null,
  batch_size: null,
  input_len: null,
  output_len: null,
  tensor_parallel_size: 1,
};

/**
 * The recorded workload with given values in place of recorded ones; `given_by_user` lists their names. A given model or dtype
 * drops recorded counts, sizes and tensors of the weights; a given dtype also their quantization.
 */
export function withContext(recorded: Workload | null, context: Context): Workload | null {
  const givenNames = givenParts.filter((part) => context[part] !== undefined);
  if (givenNames.length === 0) return recorded;
  const workload = recorded ?? unknownWorkload;
  return {
    ...workload,
    model: modelOf(workload.model, context),
    batch_size: context.batch_size ?? workload.batch_size,
    input_len: context.input_len ?? workload.input_len,
    given_by_user: givenNames,
  };
}

function modelOf(recorded: Workload['model'], { model, dtype }: Context): Workload['model'] {
  const baseModel = model ?? recorded;
  if (!baseModel || (model === undefined && dtype === undefined)) return recorded;
  const { quantization_config: _, ...otherConfig } = baseModel.config;
  return {
    name: baseModel.name,
    config: dtype === undefined ? baseModel.config : otherConfig,
    dtype: dtype ?? recorded?.dtype ?? 'unknown',
    quantization: dtype === undefined ? (recorded?.quantization ?? null) : null,
    weights: recorded?.weights ?? 'unknown',
    num_parameters: null,
    weight_bytes: null,
  };
}
