import type { KernelClassRule } from './kernel-class-rule.js';

/**
 * Functions with a full library name: tried before the patterns below, which match anywhere in a name and would match
 * words in namespaces and template arguments.
 */
const functionRules: readonly KernelClassRule[] = [
  {
    pattern: /^(?:bmm|gemm)_(?:Mx)?(?:E\dm\d|Bfloat16|Fp16|Fp32|Int\d)_\w*Fp32/,
    class: 'gemm',
    family: 'TensorRT-LLM generated GEMMs, also in FlashInfer',
    sample: 'bmm_Bfloat16_E4m3E4m3_Fp32_t128x16x128u2_s6_et64x16_m64x16x32_c1x1x1_rM_TN_transOut_sm100f',
  },
  {
    pattern:
      /quantize_with_block_size|cvt_fp\d+_to_fp\d|(?:nv|mx)fp\d_?quantize|scale_1x128_kernel|moe::dev::convertsf|silu_mul_\w*quant\w*|per_token_cast|cast_back_impl|QuantInt8Kernel|(?:MeanScale|SubMean)Kernel/i,
    class: 'quantization',
    family: 'block scales: TensorRT-LLM, FlashInfer, SageAttention, DeepSeek',
    sample: 'cvt_fp16_to_fp4_sf_major',
  },
  {
    pattern:
      /moe::dev::(?:routing|finalize)|routing(?:Indices|Main)\w*Kernel|finalizeKernel(?:VecLoad)?\b|customMoeRoutingKernel|deepseek_v3_topk_kernel|BuildExpertMaps|ExpertPrefixSumKernel|(?:reduce|expand_to)_fused_\w*impl|get_fused_mapping|computeStrides\w*Kernel/,
    class: 'moe_routing',
    family: 'TensorRT-LLM mixture of experts: routing and weighted sum',
    sample:
      'void moe::dev::routing::routingDeepSeek::routingMainKernel<moe::dev::routing::routingDeepSeek::KernelParams>',
  },
  {
    pattern: /\bmoeA2A\w+/,
    class: 'communication',
    family: 'TensorRT-LLM mixture of experts: all-to-all over NVLink',
    sample: 'void tensorrt_llm::kernels::moe_comm::moeA2ADispatchKernel<8>',
  },
  {
    pattern: /^(?:void )?kernel_mha\b/,
    class: 'attention',
    family: 'XQA: TensorRT-LLM, FlashInfer',
    sample: 'kernel_mha',
  },
  {
    pattern: /weight_only::kernel\b/,
    class: 'gemm',
    family: 'TensorRT-LLM weight-only GEMV',
    sample: 'void tensorrt_llm::kernels::weight_only::kernel<128, 2>',
  },
  {
    pattern: /[qQ][kK]_?[nN]orm_?[rR]ope/,
    class: 'elementwise',
    family: 'norm and rotary embedding of Q and K in one kernel: TensorRT-LLM, vLLM',
    sample: 'void tensorrt_llm::kernels::fusedQKNormRopeKernel<128, false>',
  },
  {
    pattern: /moe::dev::activation/,
    class: 'elementwise',
    family: 'TensorRT-LLM mixture of experts: activation',
    sample: 'void moe::dev::activation::activationKernel<moe::dev::activation::KernelParams>',
  },
  {
    pattern: /mqa_logits|qk_int\d?_sv_f(?:8|16)|sage_?attn/i,
    class: 'attention',
    family: 'DeepGEMM scores of sparse attention, SageAttention',
    sample: 'void deep_gemm::sm90_fp8_paged_mqa_logits<1u, 64u, 128u>',
  },
  {
    pattern: /gemm::(?:\w+::)*transpose/,
    class: 'copy',
    family: 'DeepGEMM',
    sample: 'void deep_gemm::transpose_fp32<512, 64>(const float *, float *)',
  },
  {
    pattern:
      /\bDeviceScan(?:Init)?Kernel|\bDevice(?:Segmented)?Reduce(?:SingleTile)?Kernel(?!.*Arg(?:Max|Min))/,
    class: 'norm',
    family: 'CUB scans and reductions',
    sample:
      'void at_cuda_detail::cub::DeviceScanKernel<at_cuda_detail::cub::DeviceScanPolicy<int>::Policy600>',
  },
  {
    pattern: /::upsample_/,
    class: 'elementwise',
    family: 'PyTorch interpolation',
    sample: 'void at::native::(anonymous namespace)::upsample_bilinear2d_out_frame<c10::Half, float>',
  },
  {
    pattern:
      /elementwise_kernel<.{0,80}?at::native::(?:CUDAFunctor(?:OnSelf)?_(?!copy)|(?:[AB]Unary|Binary)Functor<)/,
    class: 'elementwise',
    family: 'PyTorch elementwise, any argument type',
    sample:
      'void at::native::unrolled_elementwise_kernel<at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>, 4, at::native::memory::LoadWithCast<2>>',
  },
];

/** Vendor and kernel libraries with descriptive names. Tried first. */
export const libraryRules: readonly KernelClassRule[] = [
  ...functionRules,
  {
    pattern:
      /^(?:nccl|rccl)(?:Dev)?Kernel|ncclDevKernel|ncclKernel|nccl_symmetric|ncclSymk|^msccl|mscclKernel/i,
    class: 'communication',
    family: 'NCCL, RCCL',
    sample: 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)',
  },
  {
    pattern:
      /cross_device_reduce|(?:one|two)[_]?[sS]hot_?(?:all_?reduce|AllReduce)|(?:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all)(?!.*(?:triton_|softmax))|nvshmem|deep_ep::|\bep::int(?:er|ra)node|lamport|multimem|symm_mem/i,
    class: 'communication',
    family: 'vLLM custom all-reduce, TensorRT-LLM, NVSHMEM, DeepEP',
    sample:
      'void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*, vllm::RankSignals, vllm::Signal*, __nv_bfloat16*, int, int)',
  },
  {
    pattern: /flash::|flash_(?:fwd|bwd|attn|attention)|flash_?attention|FlashAttnFwd|FlashAttnBwd/i,
    class: 'attention',
    family: 'FlashAttention 2, 3',
    sample:
      'void pytorch_flash::flash_fwd_splitkv_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 64, 256, 4, false, false, cutlass::half_t>>(pytorch_flash::Flash_fwd_params)',
  },
  {
    pattern: /flashinfer::(?:\w+::)*(?:RMSNorm|FusedAddRMSNorm|Gemma\w*Norm|norm::|LayerNorm)/i,
    class: 'norm',
    family: 'FlashInfer',
    sample:
      'void flashinfer::norm::RMSNormKernel<8u, __half>(__half*, __half*, __half*, unsigned int, float)',
  },
  {
    pattern: /flashinfer::(?:\w+::)*(?:act_and_mul|ApplyRope|BatchQKApply|\w*Rotary\w*)/i,
    class: 'elementwise',
    family: 'FlashInfer',
    sample: 'void flashinfer::activation::act_and_mul_kernel<__half, silu>(__half*, __half const*, int)',
  },
  {
    pattern: /flashinfer::(?:\w+::)*(?:\w*Sampling|TopK|TopP|\w*Renorm\w*|\w*OnlineSoftmax)/i,
    class: 'sampling',
    family: 'FlashInfer',
    sample: 'void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u, 4u, float, int>(float*, int*)',
  },
  {
    pattern: /flashinfer::(?:\w+::)*AppendPaged/i,
    class: 'copy',
    family: 'FlashInfer',
    sample:
      'void flashinfer::AppendPagedKVCacheKernel<128u, 8u, __half, int>(flashinfer::paged_kv_t<__half, int>)',
  },
  {
    pattern:
      /BatchDecodeWith|BatchPrefillWith|SinglePrefillWith|SingleDecodeWith|BatchMLA|MergeState|VariableLengthMerge|flashinfer::.*(?:Prefill|Decode|Attention)/i,
    class: 'attention',
    family: 'FlashInfer',
    sample:
      'void flashinfer::BatchDecodeWithPagedKVCacheKernel<(flashinfer::PosEncodingMode)0, 2u, 4u, 16u>(flashinfer::Params)',
  },
  {
    pattern:
      /fmha|AttentionKernel|paged_attention|mmha|masked_multihead|xqa|cudnn_generated_fort_native_sdpa|_sdpa_|scaled_dot_product|mha_fwd|\bmla_|_mla\b|flash_?mla|FmhaFwd|FmhaBwd|unified_attention|kernel_unified_attention|_attn_fwd|attn_fwd|_fwd_grouped_kernel_stage[12]|_fwd_kernel_stage[12]|decode_att|^_fwd_kernel\b|pa_fwd|PagedAttention|paged_attn|lean_attention|context_attention|prefix_prefill|merge_attn_states|mla_decode|concat_and_cache_mla_rope_attn/i,
    class: 'attention',
    family: 'cuDNN, xFormers, TensorRT-LLM, vLLM, SGLang, AITER, CK',
    sample:
      'fmha_cutlassF_f16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::half_t, cutlass::arch::Sm80, true, 64, 64, 64, true, true>::Params)',
  },
  {
    pattern:
      /marlin(?!_(?:repack|moe_permute))|awq_gemm|gemm_(?:half_q_half|forward_4bit)|gptq(?:_?gemm|.*gemm)|machete|exllama.*gemm|fpA_intB|weightOnlyBatchedGemv|weight_only_gemv|dequant_gemm|gemv_4bit|kgemm_4bit|mul_mat_(?:q|vec)|deep_?gemm|fp8_gemm|w8a8|cutlass_scaled_mm|qgemm/i,
    class: 'gemm',
    family: 'quantized GEMM: Marlin, AWQ, GPTQ, Machete, DeepGEMM, bitsandbytes, llama.cpp',
    sample:
      'void marlin::Marlin<__half, 256l, 2l, 8l, 8l, 4l, false, 8l>(int4 const*, int4 const*, int4*, int, int, int)',
  },
  {
    pattern:
      /moe_align|topkGating|topk_gating|moe_sum|moe_permute|moe_unpermute|expandInputRows|finalizeMoeRouting|moe_sort|MoeSorting|grouped_topk|topk_softmax|moe::.*(?:permute|routing)|computeExpert|moe_fused_gate|biased_grouped|_finalize_matmul_scatter|_reduce_grouped/i,
    class: 'moe_routing',
    family: 'mixture-of-experts routing: vLLM, SGLang, TensorRT-LLM, AITER',
    sample:
      'void vllm::moe::topkGatingSoftmax<4, 64, 4, 16, int>(float const*, bool const*, float*, int, int*, int*, int, int, int)',
  },
  {
    pattern: /fused_moe|moe_gemm|MoeGemm|moe_mm|grouped_?gemm|group_?gemm|ck_moe|moe_stage[12]|fmoe/i,
    class: 'gemm',
    family: 'mixture-of-experts GEMM: vLLM, TensorRT-LLM, AITER',
    sample: 'fused_moe_kernel',
  },
  {
    pattern: /^nvjet_/,
    class: 'gemm',
    family: 'cuBLAS nvjet',
    sample: 'nvjet_sm90_hsh_64x8_64x16_1x1_v_bz_TNN',
  },
  {
    pattern: /Cijk_[A-Z]/,
    class: 'gemm',
    family: 'hipBLASLt, Tensile',
    sample: 'Cijk_Ailk_Bljk_HHS_BH_MT64x64x32_MI16x16x16x1_SN_1LDSB0',
  },
  {
    pattern: /splitK(?:_|r)?[rR]educe|splitKreduce|cublasLt::splitK|splitk_reduce|PostGSU/,
    class: 'gemm',
    family: 'cuBLASLt split-K reduction',
    sample:
      'void cublasLt::splitKreduce_kernel<32, 16, int, __half, __half, float, __half, true, true, false>(cublasLt::cublasSplitKParams<__half>)',
  },
  {
    pattern:
      /gemmSN|gemmk1|gemv|dot_kernel|gemm(?!a)|xmma_(?!conv|.*wgrad)|s\d+gemm|[hsdzc]gemm|cutlass.*(?:tensorop|simt|wmma)|^cutlass::Kernel|cutlass::device_kernel|_matmul|matmul_kernel|mm_kernel|\bkernel_gemm|addmm|linear_kernel|epilogue::impl::globalKernel/i,
    class: 'gemm',
    family: 'cuBLAS, CUTLASS, cuDNN GEMM, CK',
    sample: 'ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_tn',
  },
  {
    pattern:
      /cudnn::.*conv|implicit_convolve|convolve_|conv(?:olution)?_?(?:depthwise|2d|1d|fwd|forward|gemm)|xmma_(?:fprop|conv)|causal_conv1d|wgrad|dgrad|winograd|scudnn|fft2d_|cask_cudnn/i,
    class: 'gemm',
    family: 'cuDNN convolution',
    sample:
      'void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(cudnn::winograd_nonfused::WinogradDataParams<float, float>)',
  },
];
