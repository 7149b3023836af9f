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
 * The recorded workload with given values in place of recorded ones; `given` lists them. A given dtype replaces all that is known about the
 * storage of weights.
 */
export function withContext(recorded: Workload | null, context: Context): Workload | null {
  const givenByUser = givenParts.filter((part) => context[part] !== undefined);
  if (givenByUser.length === 0) return recorded;
  const workload = recorded ?? unknownWorkload;
  return {
    ...workload,
    model: modelOf(workload.model, context),
    batch_size: context.batch_size ?? workload.batch_size,
    input_len: context.input_len ?? workload.input_len,
    given: givenByUser,
  };
}

function modelOf(recorded: Workload['model'], { model, dtype }: Context): Workload['model'] {
  const modelWorkload = model ?? recorded;
  if (!modelWorkload || (model === undefined && dtype === undefined)) return recorded;
  const { quantization_config: _, ...otherConfig } = modelWorkload.config;
  return {
    name: modelWorkload.name,
    config: dtype === undefined ? modelWorkload.config : otherConfig,
    dtype: dtype ?? recorded?.dtype ?? 'unknown',
    quantization: dtype === undefined ? (recorded?.quantization ?? null) : null,
    weights: recorded?.weights ?? 'unknown',
    num_parameters: null,
    weight_bytes: null,
  };
}
