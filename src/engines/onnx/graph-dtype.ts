import type { DType } from '../../model/dtype.js';
import { InferscopeError } from '../../model/errors.js';
import type { GraphDType } from './graph-builder.js';

/**
 * The dtype of a model that the embedded engine writes.
 * @throws E_DTYPE
 */
export function graphDType(dtype: DType = 'float32'): GraphDType {
  if (dtype === 'float32' || dtype === 'int4') return dtype;
  throw new InferscopeError('E_DTYPE', {
    what: `the embedded engine has no ${dtype} models`,
    why: 'It runs on CPUs: weights are float32 or int4 (blocks of 32), activations and KV cache float32.',
    fix: 'Use --dtype float32 or --dtype int4.',
  });
}
