import { expect, test } from 'vitest';
import { bareKernelName } from './kernel-name.js';

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
