import { readdirSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { opClasses } from '../../model/classes.js';
import { kernelClassRules, kernelLabel } from './classify.js';
import { opClassOf } from './op-classes.js';

test('each rule matches its own sample, and no earlier rule does', () => {
  for (const rule of kernelClassRules) {
    expect(kernelClassRules.find(({ pattern }) => pattern.test(rule.sample))?.pattern, rule.sample).toBe(
      rule.pattern,
    );
    expect(kernelLabel(rule.sample).class).toBe(rule.class);
  }
});

/**
 * Names as profilers print them, from public traces and the sources of the engines; tile and type determined by hand.
 */
test.each([
  ['nvjet_sm90_hsh_64x8_64x16_1x1_v_bz_TNN', 'gemm', '64x8x64', 'fp16'],
  [
    'sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas',
    'gemm',
    '128x128x32',
    'tf32',
  ],
  ['nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN', 'gemm', '192x192x64', 'bf16'],
  ['nvjet_sm90_qqtst_128x64_128x6_2x1_v_bz_TNT', 'gemm', '128x64x128', 'fp8'],
  ['cutlass_80_tensorop_f16_s16816gemm_relu_f16_128x64_64x4_tn_align8', 'gemm', '128x64x64', 'fp16'],
  [
    'void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_32x6_tn_align8>(cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_32x6_tn_align8::Params)',
    'gemm',
    '64x64x32',
    'bf16',
  ],
  [
    'void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(T1::Params)',
    'gemm',
    '128x32x8',
    'fp32',
  ],
  ['ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_tn', 'gemm', '128x64x64', 'fp16'],
  ['ampere_bf16_s16816gemm_bf16_64x64_ldg8_f2f_stages_64x5_tn', 'gemm', '64x64x64', 'bf16'],
  ['ampere_sgemm_32x32_sliced1x4_tn', 'gemm', null, 'fp32'],
  ['turing_igemm_int8_128x64_ldg4_nn', 'gemm', null, 'int8'],
  [
    'sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize96x64x32_stage4_warpsize2x2x1_tensor16x8x16_kernel',
    'gemm',
    '96x64x32',
    'fp16',
  ],
  [
    'sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas',
    'gemm',
    '128x128x64',
    'bf16',
  ],
  ['Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT16x32x512_MI16x16x1_SN', 'gemm', '16x32x512', 'bf16'],
  ['Cijk_Ailk_Bljk_HHS_BH_MT64x64x32_MI16x16x16x1_SN', 'gemm', '64x64x32', 'fp16'],
  [
    'void gemv2T_kernel_val<int, int, __half, __half, __half, float, 128, 16, 4, 4, false, true>(x)',
    'gemm',
    null,
    'fp16',
  ],
  ['void marlin::Marlin<__half, 256l, 1l, 8l, 8l, 4l, false, 8l>(int4 const*)', 'gemm', null, null],
  ['awq_gemm_kernel', 'gemm', null, null],
  ['fused_moe_kernel', 'gemm', null, null],
  ['triton_tem_fused_addmm_relu_3', 'gemm', null, null],
  ['triton_per_fused_add_mean_mul_pow_rsqrt_0', 'norm', null, null],
  ['triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_5', 'norm', null, null],
  ['triton_poi_fused_mul_silu_1', 'elementwise', null, null],
  ['triton_poi_fused_cat_2', 'copy', null, null],
  ['triton_poi_fused_add_cat_cos_mul_neg_2', 'elementwise', null, null],
  // Kernels of torch.compile for a Llama: rotary angles, and inputs of attention.
  [
    'triton_poi_fused__to_copy__unsafe_view_add_arange_bmm_cat_cos_index_copy_mul_neg_sin_2',
    'elementwise',
    null,
    null,
  ],
  ['triton_poi_fused__scaled_dot_product_cudnn_attention__to_copy_arange_bmm_clone_4', 'copy', null, null],
  ['triton_per_fused__softmax_add_3', 'attention', null, null],
  [
    'triton_red_fused__scaled_dot_product_cudnn_attention__to_copy__unsafe_view_add_bmm_cat_clone_cos_expand_mean_mul_neg_pow_rsqrt_sin_3',
    'norm',
    null,
    null,
  ],
  ['triton_per_fused__to_copy_arange_bmm_cos_index_copy_mean_mul_neg_pow_rsqrt_sin_2', 'norm', null, null],
  ['triton_red_fused_mm_2', 'gemm', null, null],
  ['triton_red_fused_argmax_1', 'sampling', null, null],
  // Triton kernels of the sampler in vLLM 0.26's second model runner, from an H200.
  ['_min_p_kernel', 'sampling', null, null],
  ['_temperature_kernel', 'sampling', null, null],
  ['_bad_words_kernel', 'sampling', null, null],
  ['_apply_grammar_bitmask_kernel', 'sampling', null, null],
  ['_prompt_logprobs_token_ids_kernel', 'sampling', null, null],
  ['_bias_kernel', 'sampling', null, null],
  ['_ranks_kernel', 'sampling', null, null],
  ['_bincount_kernel', 'sampling', null, null],
  ['triton_poi_fused_embedding_0', 'embedding', null, null],
  ['_ZN5flash25flash_fwd_splitkv_kernelI23Flash_fwd_kernel_traits', 'attention', null, null],
  [
    'void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>>(flash::Flash_fwd_params)',
    'attention',
    null,
    null,
  ],
  [
    'void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2>>>>(x)',
    'attention',
    null,
    null,
  ],
  [
    'void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits>(x)',
    'attention',
    null,
    null,
  ],
  [
    'cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_kernel0_0',
    'attention',
    null,
    null,
  ],
  ['fmha_v2_flash_attention_bf16_64_128_S_q_paged_kv_128_causal_tma_ws_sm90_kernel', 'attention', null, null],
  [
    'void tensorrt_llm::kernels::mmha::masked_multihead_attention_kernel<unsigned short>(x)',
    'attention',
    null,
    null,
  ],
  ['kernel_unified_attention_2d', 'attention', null, null],
  ['void vllm::paged_attention_v2_kernel<__nv_bfloat16, 128, 16>(x)', 'attention', null, null],
  ['void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16>(x)', 'attention', null, null],
  ['void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(x)', 'norm', null, null],
  ['_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb0ELb0ELb1ELi1EEEvPT0_', 'norm', null, null],
  ['void vllm::rotary_embedding_kernel<c10::Half, true>(x)', 'elementwise', null, null],
  ['void vllm::reshape_and_cache_kernel<__half, __half, (vllm::Fp8KVCacheDataType)0>(x)', 'copy', null, null],
  ['void vllm::moe::moe_align_block_size_kernel<int>(x)', 'moe_routing', null, null],
  ['ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)', 'communication', null, null],
  ['void vllm::cross_device_reduce_2stage<__half, 4>(x)', 'communication', null, null],
  [
    'void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_oneshot_lamport<x>(x)',
    'communication',
    null,
    null,
  ],
  [
    'void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float>(x)',
    'attention',
    null,
    null,
  ],
  ['saxpy(double *, double *, double *, double, int)', 'other', null, null],
])('%s', (name, kernelClass, tile, dtype) => {
  expect(kernelLabel(name)).toEqual({ class: kernelClass, tile, dtype });
});

interface TraceEvent {
  ph?: string;
  cat?: string;
  name: string;
  dur?: number;
}

test.each(readdirSync('test/fixtures/kineto-torch2.11-h200').filter((name) => name.endsWith('.json.gz')))(
  'over 95 %% of the GPU time of %s is classified, including its operators',
  (file) => {
    const text = gunzipSync(readFileSync(`test/fixtures/kineto-torch2.11-h200/${file}`)).toString();
    const { traceEvents } = JSON.parse(text) as { traceEvents: TraceEvent[] };
    const time = new Map<string, number>();
    for (const { cat, name, dur = 0 } of traceEvents)
      if (cat === 'kernel') {
        const { class: kernelClass } = kernelLabel(name);
        time.set(kernelClass, (time.get(kernelClass) ?? 0) + dur);
      }
    const total = [...time.values()].reduce((a, b) => a + b, 0);
    expect(total).toBeGreaterThan(0);
    expect((time.get('other') ?? 0) / total).toBeLessThan(0.05);
    expect([...time.keys()].every((name) => opClasses.includes(name as (typeof opClasses)[number]))).toBe(
      true,
    );
    const ops = new Set(traceEvents.filter(({ cat }) => cat === 'cpu_op').map(({ name }) => name));
    const unknown = [...ops].filter((name) => name.startsWith('aten::') && opClassOf(name) === 'other');
    expect(unknown).toEqual([]);
  },
);

test('matches only the first letters of a name, for any length', () => {
  const name = 'sgemm_128x64_'.padEnd(100_000, 'a_1x1');
  expect(kernelLabel(name).class).toBe('gemm');
  expect(kernelLabel('x'.repeat(1500) + name).class).toBe('other');
});

test.each([
  ['aten::mm', 'gemm'],
  ['aten::addmm', 'gemm'],
  ['aten::linear', 'gemm'],
  ['aten::scaled_dot_product_attention', 'attention'],
  ['aten::_scaled_dot_product_flash_attention', 'attention'],
  ['aten::softmax', 'attention'],
  ['aten::native_layer_norm', 'norm'],
  ['aten::cat', 'copy'],
  ['aten::copy_', 'copy'],
  ['aten::mul', 'elementwise'],
  ['aten::add_', 'elementwise'],
  ['aten::embedding', 'embedding'],
  ['aten::argmax', 'sampling'],
  ['c10d::allreduce_', 'communication'],
  ['_C::rms_norm', 'norm'],
  ['nn.Module: LlamaMLP_0', 'other'],
])('operator %s is %s', (name, expected) => {
  expect(opClassOf(name)).toBe(expected);
});
