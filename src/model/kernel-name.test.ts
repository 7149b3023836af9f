import { expect, test } from 'vitest';
import { bareKernelName, kernelKey } from './kernel-name.js';

// As printed by ncu and Kineto.
test.each([
  [
    'void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::Half, float>(int, float)',
    'at::native::vectorized_layer_norm_kernel',
  ],
  [
    'void at::native::<unnamed>::softmax_warp_forward<float, 10>(T1 *, int)',
    'at::native::softmax_warp_forward',
  ],
  [
    'void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char *, 3>>(int, T2)',
    'at::native::vectorized_elementwise_kernel',
  ],
  ['nvjet_sm90_tst_8x64_64x16_2x1_v_bz_TNN', 'nvjet_sm90_tst_8x64_64x16_2x1_v_bz_TNN'],
  ['(anonymous namespace)', '(anonymous namespace)'],
])('%s', (name, bare) => {
  expect(bareKernelName(name)).toBe(bare);
});

// The same launches of tiny.py under nsys 2025.3.1 and torch 2.11's profiler.
test.each([
  [
    'void at::native::<unnamed>::CatArrayBatchedCopy<at::native::<unnamed>::OpaqueType<(unsigned int)2>, unsigned int, (int)4, (int)64, (int)64>(T1 *, at::native::<unnamed>::CatArrInputTensorMetadata<T1, T2, T4, T5>, at::native::<unnamed>::TensorSizeStride<T2, (unsigned int)4>, int, T2)',
    'void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<2u>, unsigned int, 4, 64, 64>(at::native::(anonymous namespace)::OpaqueType<2u>*, at::native::(anonymous namespace)::CatArrInputTensorMetadata<at::native::(anonymous namespace)::OpaqueType<2u>, unsigned int, 64, 64>, at::native::(anonymous namespace)::TensorSizeStride<unsigned int, 4u>, int, unsigned int)',
  ],
  [
    'void at::native::elementwise_kernel<(int)128, (int)4, void at::native::gpu_kernel_impl_nocast<at::native::neg_kernel_cuda(at::TensorIteratorBase &)::[lambda() (instance 2)]::operator ()() const::[lambda() (instance 8)]::operator ()() const::[lambda(c10::Half) (instance 1)]>(at::TensorIteratorBase &, const T1 &)::[lambda(int) (instance 1)]>(int, T3)',
    'void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::neg_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda()#8}::operator()() const::{lambda(c10::Half)#1}>(at::TensorIteratorBase&, at::native::neg_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda()#8}::operator()() const::{lambda(c10::Half)#1} const&)::{lambda(int)#1}>(int, at::native::gpu_kernel_impl_nocast<at::native::neg_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda()#8}::operator()() const::{lambda(c10::Half)#1}>(at::TensorIteratorBase&, at::native::neg_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda()#8}::operator()() const::{lambda(c10::Half)#1} const&)::{lambda(int)#1})',
  ],
  [
    'void cublasLt::splitKreduce_kernel<(int)32, (int)16, int, float, __half, float, __half, (bool)0, float, __half, __half, (bool)1, (bool)0, (bool)0, (bool)0>(cublasLt::cublasSplitKParams<T6>, const T4 *)',
    'void cublasLt::splitKreduce_kernel<32, 16, int, float, __half, float, __half, false, float, __half, __half, true, false, false, false>(cublasLt::cublasSplitKParams<float>, float const*)',
  ],
  [
    'void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(T1::Params)',
    'void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(cutlass_80_simt_sgemm_128x32_8x5_nn_align1::Params)',
  ],
])('one kernel in nsys and Kineto: %.60s', (nsys, kineto) => {
  expect(kernelKey(nsys)).toBe(kernelKey(kineto));
});

test('ncu leaves out the namespace native and the casts', () => {
  expect(
    kernelKey(
      'void at::<unnamed>::cunn_SoftMaxForwardReg<c10::Half, float, c10::Half, at::<unnamed>::SoftMaxForwardEpilogue, long, 4>(T3 *, const T1 *, T5)',
    ),
  ).toBe(
    kernelKey(
      'void at::native::<unnamed>::cunn_SoftMaxForwardReg<c10::Half, float, c10::Half, at::native::<unnamed>::SoftMaxForwardEpilogue, long, (int)4>(T3 *, const T1 *, T5)',
    ),
  );
});

test('template arguments, data types of lambdas and tiles distinguish kernels', () => {
  const names = [
    'void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<double>, std::array<char*, 1ul> >(int)',
    'void at::native::vectorized_elementwise_kernel<8, at::native::FillFunctor<double>, std::array<char*, 1ul> >(int)',
    'void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int)',
    'fill(float*)',
    'fill(double*)',
    'nvjet_sm90_hsh_64x8_64x16_4x1_v_bz_splitK_TNT',
    'nvjet_sm90_hsh_128x8_64x16_4x1_v_bz_splitK_TNT',
    'f<(lambda)1>()::{lambda(float)#1}',
    'f<(lambda)1>()::{lambda(float)#2}',
  ];
  expect(new Set(names.map(kernelKey)).size).toBe(names.length);
});
