import { opClasses, type OpClass } from '../model/classes.js';
import type { DType } from '../model/dtype.js';
import type { NecessaryOp, OpBytes } from './necessary-op.js';

/** Sums over operations; `flops_by_dtype` has only the dtypes in use. */
export interface Work {
  ops: number;
  flops: number;
  flops_by_dtype: Partial<Record<DType, number>>;
  bytes: OpBytes;
  bytes_total: number;
}

/** Bytes that an operation moves, of all kinds. */
export function bytesOf({ bytes }: Pick<NecessaryOp, 'bytes'>): number {
  return bytes.weights + bytes.kv_read + bytes.kv_write + bytes.activations_in + bytes.activations_out;
}

export function totalWork(ops: readonly NecessaryOp[]): Work {
  const work: Work = {
    ops: ops.length,
    flops: 0,
    flops_by_dtype: {},
    bytes: { weights: 0, kv_read: 0, kv_write: 0, activations_in: 0, activations_out: 0 },
    bytes_total: 0,
  };
  for (const op of ops) {
    work.flops += op.flops;
    if (op.flops > 0) work.flops_by_dtype[op.dtype] = (work.flops_by_dtype[op.dtype] ?? 0) + op.flops;
    work.bytes.weights += op.bytes.weights;
    work.bytes.kv_read += op.bytes.kv_read;
    work.bytes.kv_write += op.bytes.kv_write;
    work.bytes.activations_in += op.bytes.activations_in;
    work.bytes.activations_out += op.bytes.activations_out;
    work.bytes_total += bytesOf(op);
  }
  return work;
}

/** Work of each class in use, in the fixed order of the classes. */
export function workByClass(ops: readonly NecessaryOp[]): { class: OpClass; work: Work }[] {
  return opClasses
    .map((opClass) => ({ class: opClass, work: totalWork(ops.filter((op) => op.class === opClass)) }))
    .filter(({ work }) => work.ops > 0);
}
