import { expect, test } from 'vitest';
import { cutMiddle } from './cut.js';
import { kernelLabel, kernelLabels } from './kernel-label.js';

/** FlashAttention 3 as nsys recorded it from vLLM 0.26 on an H200, shortened; a GEMM of CUTLASS 3. */
test.each([
  [
    'void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<(int)2, cute::tuple<cute::C<(int)1>>>>>>(T1::Params)',
    'FlashAttnFwdSm90',
  ],
  [
    'void cutlass::device_kernel<flash::FlashAttnFwdCombine<cute::tuple<cute::C<(int)16>, cute::C<(int)64>>, (int)5, (int)256>>(T1::Params)',
    'FlashAttnFwdCombine',
  ],
  [
    'void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int>>>(T1::Params)',
    'GemmUniversal',
  ],
  ['cutlass::device_kernel', 'device_kernel'],
])('a generic device kernel is labeled by the kernel that it wraps: %s', (name, label) =>
  expect(kernelLabel(name)).toBe(label),
);

/** Names recorded by nsys on an H200 (torch 2.11). */
test.each([
  [
    'void at::native::elementwise_kernel<(int)128, (int)4, void at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<c10::Half, c10::Half, c10::Half, at::native::binary_internal::MulFunctor<float>>>(at::TensorIteratorBase &, const T1 &)::[lambda(int) (instance 1)]>(int, T3)',
    'elementwise mul',
  ],
  [
    'void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase &)::[lambda() (instance 3)]::operator ()() const::[lambda(float) (instance 1)], std::array<char *, (unsigned long)2>, (int)4>(int, T1)',
    'elementwise direct copy',
  ],
  [
    'void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, unsigned int, float, (int)4, (int)4>>(T3)',
    'reduce mean',
  ],
  [
    'void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<c10::Half, at::native::ArgMaxOps<float>, unsigned int, long, (int)4, (int)4>>(T3)',
    'reduce arg max',
  ],
  [
    'void at::native::vectorized_elementwise_kernel<(int)8, at::native::CUDAFunctor_add<c10::Half>, std::array<char *, (unsigned long)3>>(int, T2, T3)',
    'elementwise add',
  ],
  [
    'void at::native::vectorized_elementwise_kernel<(int)8, at::native::<unnamed>::silu_kernel(at::TensorIteratorBase &)::[lambda() (instance 1)], std::array<char *, (unsigned long)2>>(int, T2, T3)',
    'elementwise silu',
  ],
  [
    'void at::native::vectorized_elementwise_kernel<(int)4, void at::native::<unnamed>::pow_tensor_scalar_kernel_impl<float, float>(at::TensorIteratorBase &, T2)::[lambda(float) (instance 1)], std::array<char *, (unsigned long)2>>(int, T2, T3)',
    'elementwise pow tensor scalar',
  ],
  [
    'void at::native::vectorized_elementwise_kernel<(int)8, at::native::FillFunctor<c10::Half>, std::array<char *, 1>>(int, T2, T3)',
    'elementwise fill',
  ],
  [
    'void at::native::<unnamed>::CatArrayBatchedCopy_vectorized<at::native::<unnamed>::OpaqueType<(unsigned int)2>, unsigned int, (int)3>(char *, T2)',
    'CatArrayBatchedCopy_vectorized',
  ],
  ['nvjet_sm90_hsh_64x8_64x16_4x1_v_bz_splitK_TNT', 'nvjet 64x8_64x16_4x1_v_splitK_TNT'],
  [
    'cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_knob_3_64x64x64_4x1x1_cga1x1x1_kernel0_0',
    'cudnn sdpa flash_fprop 64x64x64',
  ],
  [
    'void cublasLt::splitKreduce_kernel<(int)32, (int)16, int>(cublasLt::cublasSplitKParams<T6>)',
    'splitKreduce_kernel',
  ],
  ['triton_red_fused_add_mean_mul_pow_3', 'triton_red_fused_add_mean_mul_pow_3'],
  [
    'std::enable_if<T2>0&&vllm::_typeConvert<T1>::exists, void>::type vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8, 1>(T1 *, long)',
    'fused_add_rms_norm_kernel',
  ],
  [
    'std::enable_if<(T2>(0))&&(vllm::_typeConvert<T1>::exists), void>::type vllm::fused_add_rms_norm_kernel<c10::BFloat16, (int)8>(T1 *)',
    'fused_add_rms_norm_kernel',
  ],
  ['CUDA graph 1', 'CUDA graph 1'],
  ['', ''],
])('%s', (name, label) => {
  expect(kernelLabel(name)).toBe(label);
});

test('kernels without a tile in their name get the known one; long names are cut in the middle', () => {
  expect(kernelLabel('gemmk1_kernel', '64x8x64')).toBe('gemmk1_kernel 64x8x64');
  expect(cutMiddle('nvjet 64x8_64x16_4x1_v_splitK_TNT', 20)).toBe('nvjet 64x8…plitK_TNT');
  expect([...cutMiddle('nvjet 64x8_64x16_4x1_v_splitK_TNT', 20)]).toHaveLength(20);
});

test('labels a name of 10 MB as fast as any other, and the label fits a line', () => {
  expect(kernelLabel(`nvjet_${'k'.repeat(10_000_000)}`)).toHaveLength(160);
  expect(kernelLabel('nvjet_sm90_hsh_64x8_64x16_1x1_v_bz_TNN')).toBe('nvjet 64x8_64x16_1x1_v_TNN');
});

test('kernels listed together have different labels', () => {
  const fill = (width: number, type: string): string =>
    `void at::native::vectorized_elementwise_kernel<${width}, at::native::FillFunctor<${type}>, std::array<char*, 1ul> >(int)`;
  const names = [fill(8, 'c10::BFloat16'), fill(4, 'float'), 'a_kernel', 'k<4>()', 'k<8>()'];
  expect([...kernelLabels([...names, ...names].map((name) => ({ name }))).values()]).toEqual([
    'elementwise fill, BFloat16',
    'elementwise fill, float',
    'a_kernel',
    'k <4>',
    'k <8>',
  ]);
});

test('kernels with names of the same words in another order are numbered', () => {
  const names = ['attend<(bool)1, (bool)0>', 'attend<(bool)0, (bool)1>', 'gemm'];
  expect([...kernelLabels(names.map((name) => ({ name }))).values()]).toEqual([
    'attend, variant 2',
    'attend, variant 1',
    'gemm',
  ]);
});

test('placeholders of demangled names tell no kernels apart', () => {
  const names = [
    'void at::native::CatArrayBatchedCopy<float, 3>(T1 *, unsigned int)',
    'void at::native::CatArrayBatchedCopy<c10::Half, 3>(const c10::Half *, int)',
  ];
  const labels = [...kernelLabels(names.map((name) => ({ name }))).values()];
  expect(labels[0]).toBe('CatArrayBatchedCopy, float');
  // The part of a library's name that differs, here the types.
  const nvjet = ['hsh', 'tst'].map((types) => `nvjet_sm90_${types}_256x128_64x4_1x2_h_bz_coopA_TNT`);
  expect([...kernelLabels(nvjet.map((name) => ({ name }))).values()]).toEqual([
    'nvjet 256x128_64x4_1x2_h_coopA_TNT, hsh',
    'nvjet 256x128_64x4_1x2_h_coopA_TNT, tst',
  ]);
});
