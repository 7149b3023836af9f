import type { Row } from '../../../model/tables.js';
import { firingOf, type Part } from '../test-steps.js';
import { castsAndLayoutCopies } from './casts-and-layout-copies.js';
import { eagerAttention } from './eager-attention.js';
import { elementwiseNormOverhead } from './elementwise-norm-overhead.js';
import { exposedCommunication } from './exposed-communication.js';
import { gemmShape } from './gemm-shape.js';
import { halfPrecision } from './half-precision.js';
import { kvCacheConcat } from './kv-cache-concat.js';
import { rankStragglers } from './rank-stragglers.js';

/** Ids of the kernel rules that fire. */
export const firing = firingOf([
  kvCacheConcat,
  castsAndLayoutCopies,
  elementwiseNormOverhead,
  eagerAttention,
  halfPrecision,
  gemmShape,
  exposedCommunication,
  rankStragglers,
]);

export const run = (takes: number, kernelClass: string, name: string, more: Row<'kernels'> = {}): Part => ({
  kernel: takes,
  more: { class: kernelClass, name, short_name: name, ...more },
});
/** Names of PyTorch's own kernels in nsys. */
export const names = {
  gemm: 'nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT',
  cat: 'void at::native::<unnamed>::CatArrayBatchedCopy_vectorized<OpaqueType<2>, unsigned int, 4, 64, 64>',
  cast: 'void at::native::vectorized_elementwise_kernel<4, at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase &)>',
  layout:
    'void at::native::elementwise_kernel<128, 4, gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda>>',
  mul: 'void at::native::vectorized_elementwise_kernel<8, at::native::BinaryFunctor<MulFunctor>>',
  norm: 'void at::native::<unnamed>::vectorized_layer_norm_kernel<float>',
  softmax: 'void at::native::<unnamed>::cunn_SoftMaxForward<8, c10::BFloat16>',
  topk: 'void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>',
  flash: 'void pytorch_flash::flash_fwd_splitkv_kernel<pytorch_flash::Flash_fwd_kernel_traits<64>>',
  scan: 'void at::native::tensor_kernel_scan_innermost_dim<float, std::plus<float>>',
};
export const gemm = (takes: number, more: Row<'kernels'> = {}) =>
  run(takes, 'gemm', names.gemm, { dtype: 'bf16', ...more });
