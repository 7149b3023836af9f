import { expect, test } from 'vitest';
import type { OpClass } from '../../model/classes.js';
import { kernelLabel } from './classify.js';

/**
 * Kernel names from public traces and sources, by source, with the class that follows from their function. Signatures
 * are truncated as in the sources.
 */
const knownNames: Record<string, readonly [name: string, opClass: OpClass][]> = {
  // torch-profiler rows of SGLang 2026-06 on a B200: TensorRT-LLM's generated GEMMs, FlashInfer, DeepGEMM, DeepEP, cuBLAS.
  'SGLang on a B200': [
    [
      'bmm_E4m3_E4m3E4m3_Fp32_t128x8x128u2_s8_et64x8_m64x8x32_c1x1x1_rM_TN_transOut_noShfl_dsFp8_schPd4x2x2x3_bN_tma_tmaSf_rgTma_clmp_lbW2_dynB_sm100f',
      'gemm',
    ],
    [
      'bmm_Bfloat16_E2m1E2m1_Fp32_Ab16_Bb16tokFp32_t128x8x512_s5_et128x8_m128x8x64_c1x1x1_rM_TN_transOut_schPd2x1x2x3_biasFp32M_bN_rgTma_clmp_dynB_sm100f',
      'gemm',
    ],
    [
      'bmm_E2m1_E2m1E2m1_Fp32_Ab16_Bb16_Cb16_t128x32x512u2_s4_et128x32_m128x32x64_c1x1x1_rM_TN_transOut_schPd2x1x2x3_biasFp32M_bN_ldgsts_ldgstsSf_rgTma_clmp_swiGlu_dynB_sm100f',
      'gemm',
    ],
    [
      'bmm_Bfloat16_MxE2m1MxE4m3_Fp32_Ab32_Bb32_t128x128x256u2_s4_et128x64_m256x128x32_c2x1x1_rM_TN_transOut_schPd2x1x2x3_biasFp32M_bN_rgTma_clmp_dynB_sm100f',
      'gemm',
    ],
    ['bmm_Bfloat16_MxInt4Bfloat16_castBfloat16_Fp32_Ab32_t128', 'gemm'],
    ['bmm_Bfloat16_Bfloat16Bfloat16_Fp32_t128x64x128_s5_et128x64_m256x64x16_c2x1x1_rM_BN_transOu', 'gemm'],
    ['nvjet_sm100_tst_64x16_64x16_2x4_2cta_h_bz_splitK_bias_TNT', 'gemm'],
    [
      'void flashinfer::trtllm_dsv3_router_gemm::router_gemm_kernel<__nv_bfloat16, float, 128, 8, 16, 256, 7168>(float*, __nv_bfloat16 const*, __nv_bfloat16 const*)',
      'gemm',
    ],
    [
      'kernel_cutlass_kernel_flashinfergemmkernelsdense_blockscaled_gemm_sm100Sm100BlockScaledPersistentDenseGemmKernel_object_at__TiledMMA_ThrLayoutVMNK11110000_PermutationMNK____MMAA',
      'gemm',
    ],
    [
      'void deep_gemm::sm100_fp8_fp4_gemm_1d1d_impl<(cute::UMMA::Major)0, (cute::UMMA::Major)0, 128u, 128u, 0u, 0u, 0u, 240u, 128u, 128u, 1u, 128u, 128u, 128u, 6u, 128u, 128u, 2u, true, 148u, true, (deep_gemm::GemmType)0, false, cutlass::float_e4m3_t, cutlass::float_e4m3_t, cutlass::bfloat16_t>',
      'gemm',
    ],
    [
      'kernel_cutlass_kernel_flashinferquantizationkernelsnvfp4_quantizeNVFP4QuantizeSwizzledKernel_object_at__tensorptrbf16gmemalign16o716871681_tensorptri8gmemalign16o358435841_tenso',
      'quantization',
    ],
    [
      'void tensorrt_llm::kernels::quantize_with_block_size<(tensorrt_llm::BlockScaleQuantizationType)2, __nv_bfloat16, 32, true, false, false, false, std::integral_constant<bool, false> >(int, int, int, int, __nv_bfloat16 const*, float const*, void*, unsigned int*, flashinfer::QuantizationSFLayout)',
      'quantization',
    ],
    [
      'void moe::dev::finalize::finalizeKernelVecLoad<moe::dev::finalize::KernelParams<cutlass::bfloat16_t, cutlass::bfloat16_t, 4, true> >(moe::dev::finalize::KernelParams<cutlass::bfloat16_t, cutlass::bfloat16_t, 4, true>)',
      'moe_routing',
    ],
    [
      'void moe::dev::convertsf::convertSfKernel<moe::dev::convertsf::KernelParams<cutlass::bfloat16_t>>',
      'quantization',
    ],
    // Their names contain the GEMM that reads their output.
    ['void vllm::silu_mul_fp8_quant_deep_gemm_kernel<c10::BFloat16, c10::Float8_e4m3fn>', 'quantization'],
    [
      'void tensorrt_llm::kernels::fp8_blockscale_gemm::scale_1x128_kernel<__nv_bfloat16, __nv_fp8_e4m3>',
      'quantization',
    ],
    [
      'void moe::dev::activation::activationDeepSeekKernel<moe::dev::activation::KernelParams<cutlass::float_e4m3_t, 4, true> >(moe::dev::activation::KernelParams<cutlass::float_e4m3_t',
      'elementwise',
    ],
    [
      'void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*, __nv_bfloat16*, __nv_bfloat16*, unsigned int, unsigned int, unsigned int, float, float)',
      'norm',
    ],
    [
      'void (anonymous namespace)::fused_rope_kernel<false, 128l, true, __nv_bfloat16, long, 16u>((anonymous namespace)::FusedRopeParams)',
      'elementwise',
    ],
    [
      'void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<(flashinfer::trtllm_allreduce_fusion::AllReduceFusionPattern)1, __nv_bfloat16, 8, false, false>(flashinfer::trtllm_allreduce_fusion::AllReduceFusionParams<__nv_bfloat16>)',
      'communication',
    ],
    [
      'void deep_ep::intranode::notify_dispatch<8>(int const*, int*, int const*, int*, int, int, int, bool const*, int*, int*, int, int, void**, int**, int)',
      'communication',
    ],
    [
      'void deep_ep::intranode::cached_notify_combine<8>(void**, int*, int, int, int, int**, int)',
      'communication',
    ],
    [
      'void (anonymous namespace)::fast_hadamard_transform_kernel<(anonymous namespace)::FastHadamardKernelTraits<16, 7, __nv_bfloat16> >(HadamardParamsBase)',
      'other',
    ],
  ],
  // The PyTorch profiler's tables of TensorRT-LLM on an H100 with Qwen3-8B and Qwen3-30B-A3B, published in SGLang's repository.
  'TensorRT-LLM on an H100': [
    ['kernel_mha', 'attention'],
    [
      'void fused_moe::run_global<fused_moe::Fused_Moe_Kernel_sm80<cutlass::bfloat16_t, cutlass::bfloat16_t, cutlass::bfloat16_t, 32, 128, 64, 4, (fused_moe::Activation_Type)3> >',
      'gemm',
    ],
    [
      '_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalINS1_17GroupProblemShapeIN4cute5tupleIJlllEEEEENS1_10collective13CollectiveMmaINS1_39MainloopSm90ArrayTmaGmmaWarpSpecializedILi12E',
      'gemm',
    ],
    ['nvjet_tst_64x8_64x16_4x1_v_bz_splitK_TNT', 'gemm'],
    [
      'void tensorrt_llm::kernels::cutlass_kernels::fusedBuildExpertMapsSortFirstTokenKernel<32, 8, 8>',
      'moe_routing',
    ],
    [
      'void tensorrt_llm::kernels::cutlass_kernels::computeStridesTmaWarpSpecializedKernel<__nv_bfloat16, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16>',
      'moe_routing',
    ],
    [
      'void tensorrt_llm::kernels::cutlass_kernels::expandInputRowsKernel<__nv_bfloat16, __nv_bfloat16, (tensorrt_llm::kernels::cutlass_kernels::TmaWarpSpecializedGroupedGemmInput::FpXBlockScalingType)2, false>',
      'moe_routing',
    ],
    [
      'void tensorrt_llm::kernels::customMoeRoutingKernel<__nv_bfloat16, float, int, 128, 8, false>',
      'moe_routing',
    ],
    [
      'void tensorrt_llm::kernels::applyBiasRopeUpdateKVCacheV2<__nv_bfloat16, __nv_bfloat16, 256, 128, false, false, false, true, tensorrt_llm::kernels::KVBlockArray, (tensorrt_llm::kernels::RotaryPositionEmbeddingType)0>',
      'elementwise',
    ],
    ['void tensorrt_llm::kernels::fusedQKNormRopeKernel<128, false>', 'elementwise'],
    ['Memset (Unknown)', 'copy'],
  ],
  // Kernels of TensorRT-LLM that profiles of others name: XQA in FlashInfer, the router of DeepSeek-V3, the NVLink all-to-all.
  'TensorRT-LLM elsewhere': [
    ['kernel_mha(unsigned int, float, float const*, ', 'attention'],
    ['void tensorrt_llm::kernels::deepseek_v3_topk_kernel<float>', 'moe_routing'],
    ['void tensorrt_llm::kernels::cutlass_kernels::blockExpertPrefixSumKernel<1024>', 'moe_routing'],
    ['void tensorrt_llm::kernels::moe_comm::moeA2ADispatchKernel<8>', 'communication'],
    ['void tensorrt_llm::kernels::moe_comm::moeA2ACombineKernel<__nv_bfloat16>', 'communication'],
    ['fmha_v2_flash_attention_fp16_64_32_S_qkv_128_causal_sm86_kernel_nl', 'attention'],
    ['tensorrt_llm::kernels::computeSeqAndPaddingOffsets<', 'copy'],
    ['copyBatchBlockOffsetsToDeviceKernel', 'copy'],
  ],
  // vLLM 0.30 on four B200s, DeepSeek-V4.1-Flash, profiled decode steps.
  'vLLM on B200s': [
    [
      'bmm_MxE4m3_MxE2m1MxE4m3_Fp32_Ab32_Bb32_Cb32_t128x32x256_s5_et128x32_m256x32x32_c2x1x1_rM_TN_transOut_schPd2x1x2x3_biasFp',
      'gemm',
    ],
    [
      'void moe::dev::routing::routingCustom::routingIndicesClusterKernel<moe::dev::routing::routingCustom::KernelParams<__nv_b',
      'moe_routing',
    ],
    [
      'void moe::dev::finalize::finalizeKernel<moe::dev::finalize::KernelParams<cutlass::bfloat16_t, float, 2, true> >(moe::dev',
      'moe_routing',
    ],
    [
      'kernel_cutlass_kernel_flashinferquantizationkernelsmxfp8_quantizeMXFP8QuantizeSwizzledKernel_object_at__tensorptrbf16gme',
      'quantization',
    ],
    [
      'fmhaSm100fKernel_QkvE4m3OBfloat16H512PagedKvDenseDynamicTokenSparseP1VarSeqQ16Kv128PersistentSwapsAbForGen',
      'attention',
    ],
    [
      'void flashinfer::trtllm_mnnvl_allreduce::twoshotAllreduceKernel<(unsigned char)4, __nv_bfloat16, true, float4>(flashinfe',
      'communication',
    ],
    ['ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)', 'communication'],
    [
      'void deep_gemm::sm100_paged_mqa_logits<1u, 32u, 128u, 64u, true, true, true, 3u, 10u, 256u, 16u, 128u, 256u, cutlass::fl',
      'attention',
    ],
    ['nvjet_sm100_tst_256x104_64x4_4x1_v_bz_TNT', 'gemm'],
    [
      'void at::native::mbtopk::computeBlockDigitCounts<float, unsigned int, unsigned int, 2>(at::cuda::detail::TensorInfo<floa',
      'sampling',
    ],
    [
      'void vllm::sampled_topk::sampled_topk_kernel<512>(float const*, int const*, int*, long, int)',
      'sampling',
    ],
    [
      'void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, float, false, float, float, float, true, false, fal',
      'gemm',
    ],
    ['_hash_ids_kernel', 'other'],
  ],
  // FlashMLA and DeepEP in SGLang and vLLM traces.
  'FlashMLA, DeepEP': [
    [
      'void sm100::decode::head64::flash_fwd_splitkv_mla_fp8_sparse_kernel<sm100::decode::head64::KernelTemplate<(...',
      'attention',
    ],
    [
      'void flash_fwd_mla_combine_kernel<cutlass::bfloat16_t, 512, 32, 128>(Flash_fwd_mla_params)',
      'attention',
    ],
    [
      'void deep_ep::internode_ll::dispatch<(bool)1, (bool)1, (int)6144>(void *, void *, int *, long *, int *, int',
      'communication',
    ],
    [
      'void deep_ep::internode_ll::combine<(bool)0, (int)6144, (int)11, (int)4>(void *, void *, int *, void *, con',
      'communication',
    ],
    // DeepSeek's published training profile names DeepEP's kernels by their older namespace.
    [
      'void dpsk::ep::internode::cached_notify<false>(int, int, int, int, int*, int, int, int const*, int const*, int*, void*, void**, int**, int, int, int, int*, bool, int)',
      'communication',
    ],
    [
      'void dpsk::grouped_gemm::cuda::utils::transpose<512, 128, 4, 4>(unsigned char const*, unsigned char*, int, int, int, int)',
      'copy',
    ],
    ['void cuda::per_token_cast_to_fp8_with_channels<__nv_bfloat16, 128, false, 128>', 'quantization'],
    ['void cuda::cast_back_impl<__nv_fp8x2_e4m3>(void const*, void*, float const*)', 'quantization'],
    ['void cuda::per_token_cast_back_special_fmt_impl<__nv_fp8x2_e4m3>', 'quantization'],
    ['void cuda::reduce_fused_impl<__nv_bfloat16, false, false>(int4 const*, float const*)', 'moe_routing'],
    ['cuda::expand_to_fused_with_scales_impl(int4 const*, int4*, float const*, float*)', 'moe_routing'],
    ['void deep_gemm::sm90_fp8_mqa_logits<64u, 128u, false>(int)', 'attention'],
    ['void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 2112u, 7168u, 1u, 128u>', 'gemm'],
    ['void deep_gemm::transpose_fp32<512, 64>(const float *, float *)', 'copy'],
    [
      'void deep_gemm::sm90_tf32_hc_prenorm_gemm_impl<24u, 16384u, 64u, 32u, 64u, 1u, 128u, 12u, 128u, 128u>(unsigned int, CUtensorMap_st, CUtensorMap_st, CUtensorMap_st, float*)',
      'gemm',
    ],
  ],
  // SageAttention 2 on sm_89 and sm_120.
  SageAttention: [
    ['void qk_int_sv_f8_attn_kernel<128u, 64u, 32u, 64u, 128u, (DataType)1>', 'attention'],
    ['void QuantInt8Kernel<128u, 32u, 1u, false, false, __nv_bfloat16>', 'quantization'],
    ['void MeanScaleKernel<64u, false, __nv_bfloat16>', 'quantization'],
    ['void SubMeanKernel<128u, __nv_bfloat16>', 'quantization'],
  ],
  // AITER and Composable Kernel on MI300X.
  AITER: [
    ['_ZN5aiter52fmoe_bf16_blockscaleFp8_g1u1_novs_silu_1tg_ps_32x256E', 'gemm'],
    ['_ZN7ck_tile6kentryILi1ENS_16MoeSortingKernelINS_16MoeSortingProblemEEEEEvNT0_5KargsE', 'moe_routing'],
    ['moe_smooth_per_token_scaled_quant_kernel_v1', 'quantization'],
    [
      '_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64ELi8ELb0ELb0ELb1ELi1EEEvPT0_PT_PfS4_S4_S4_diiiiiiib',
      'norm',
    ],
    ['ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)', 'communication'],
  ],
  // CUB in traces of PyTorch and of CUDA programs.
  CUB: [
    [
      'void cub::DeviceScanKernel<cub::AgentScanPolicy<int=128, int=15, int, cub::BLOCK_LOAD_WARP_TRANSPOSE, cub::CacheLoadModifier, cub::BLOCK_STORE_WARP_TRANSPOSE, cub::BLOCK_SCAN_RAKING>, int*, int*, cub::ScanTileState<int, bool=1>>',
      'norm',
    ],
    [
      'void at_cuda_detail::cub::DeviceScanKernel<at_cuda_detail::cub::DeviceScanPolicy<int>::Policy600, long const*>',
      'norm',
    ],
    [
      'void at_cuda_detail::cub::DeviceScanInitKernel<at_cuda_detail::cub::ScanTileState<int, true> >',
      'norm',
    ],
    [
      'void cub::DeviceSegmentedReduceKernel<cub::DeviceReducePolicy<float, int, cub::Sum>::Policy600, float*>',
      'norm',
    ],
    [
      'void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<float, long, int>::Policy900, false, float, long, int, int, int>',
      'sampling',
    ],
    [
      'void at_cuda_detail::cub::DeviceSelectSweepKernel<at_cuda_detail::cub::DispatchSelectIf<bool*>>',
      'copy',
    ],
  ],
  // PyTorch: captures of an H200, and samples of TraceLens and HTA.
  PyTorch: [
    [
      'void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long, unsigned int, 2, 2, -2, true>(at::cuda::detail::TensorInfo<c10::BFloat16, unsigned int>',
      'embedding',
    ],
    [
      'void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, long, long, bool)',
      'embedding',
    ],
    [
      'void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<at::native::index_kernel_impl<at::native::OpaqueType<2> >(at::TensorIteratorBase&, c10::ArrayRef<long>, c10::ArrayRef<long>)::{lambda(char*, char const*, long)#1}>',
      'embedding',
    ],
    [
      'void tensorrt_llm::kernels::lookup_kernel<__half, int>(__half*, int const*, __half const*, int)',
      'embedding',
    ],
    [
      'void at::native::(anonymous namespace)::upsample_nearest2d_out_frame<c10::Half, &at::native::nearest_neighbor_compute_source_index>',
      'elementwise',
    ],
    [
      'void at::native::unrolled_elementwise_kernel<at::native::CUDAFunctor_add<float>, std::array<char *, (unsigned long)3>, (int)4, TrivialOffsetCalculator<(int)2, unsigned int>, TrivialOffsetCalculator<(int)1, unsigned int>, at::native::memory::LoadWithCast<(int)2>, at::native::memory::StoreWithCast<(int)1>>',
      'elementwise',
    ],
    [
      'void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul>, 4, TrivialOffsetCalculator<1, unsigned int>, TrivialOffsetCalculator<1, unsigned int>, at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1> >',
      'copy',
    ],
    [
      'void at::native::(anonymous namespace)::max_pool_forward_nchw<float, float>(int, float const*)',
      'other',
    ],
  ],
};

test.each(
  Object.entries(knownNames).flatMap(([source, rows]) => rows.map((row) => [source, ...row] as const)),
)('%s: %s is %s', (_, name, opClass) => {
  expect(kernelLabel(name).class).toBe(opClass);
});

/**
 * Names of generated GEMMs have output, inputs A and B, accumulator and tile; the wider of two input types determines
 * the rate.
 */
test.each([
  ['bmm_E4m3_E4m3E4m3_Fp32_t128x8x128u2_s8_et64x8_m64x8x32_c1x1x1', '128x8x128', 'fp8'],
  ['bmm_Bfloat16_E2m1E2m1_Fp32_Ab16_Bb16tokFp32_t128x8x512_s5_et128x8', '128x8x512', 'fp4'],
  ['bmm_MxE4m3_MxE2m1MxE4m3_Fp32_Ab32_Bb32_Cb32_t128x32x256_s5_et128x32', '128x32x256', 'fp8'],
  ['bmm_Bfloat16_MxInt4Bfloat16_castBfloat16_Fp32_Ab32_t128', null, 'bf16'],
  ['bmm_Bfloat16_Bfloat16Bfloat16_Fp32_t128x64x128_s5_et128x64_m256x64x16', '128x64x128', 'bf16'],
  [
    'void deep_gemm::sm100_fp8_fp4_gemm_1d1d_impl<128u, false, cutlass::float_e4m3_t, cutlass::float_e4m3_t, cutlass::bfloat16_t>',
    null,
    'fp8',
  ],
  ['cutlass3x_sm90_tensorop_s64x128x16gemm_f16_f16_f32_f16_f16_128x128x64_2x1x1_0_tnn', '128x128x64', 'fp16'],
  [
    'cutlass3x_sm100_bstensorop_s256x128x64gemm_block_scaled_ue4m3xe2m1_ue4m3xe2m1_f32_bf16_bf16_256x128x256',
    '256x128x256',
    'fp4',
  ],
])('tile and type of %s', (name, tile, dtype) => {
  expect(kernelLabel(name)).toEqual({ class: 'gemm', tile, dtype });
});
