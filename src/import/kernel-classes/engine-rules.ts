import type { KernelClassRule } from './kernel-class-rule.js';

/** Kernels of frameworks and engines: PyTorch, vLLM, SGLang, TensorRT-LLM, bitsandbytes, ROCm. Tried after libraries. */
export const engineRules: readonly KernelClassRule[] = [
  {
    pattern:
      /rms_?norm|layer_?norm|LayerNorm|RowwiseMoments|GroupNorm|batch_norm|bn_(?:fw|bw)|l2norm|fused_add_norm|addNorm/i,
    class: 'norm',
    family: 'vLLM, SGLang, TensorRT-LLM, PyTorch',
    sample:
      'void vllm::rms_norm_kernel<c10::Half>(c10::Half*, c10::Half const*, c10::Half const*, float, int, int)',
  },
  {
    pattern:
      /reshape_and_cache|copy_blocks|swap_blocks|store_kv|set_kv_buffer|concat_and_cache|write_req_to_token|kv_?cache.*(?:copy|store|write|update|transfer)|transfer_kv|kvCacheCopy|convert_fp8_kernel/i,
    class: 'copy',
    family: 'KV-cache writes: vLLM, SGLang, TensorRT-LLM',
    sample:
      'void vllm::reshape_and_cache_flash_kernel<__half, __half, (vllm::Fp8KVCacheDataType)0>(__half const*, __half const*, __half*, __half*)',
  },
  {
    pattern:
      /quant(?!ile)|scaled_fp8|per_token_group|cvt_fp4|cvt_fp16_to_fp4|fp8_cast|blockwise_amax|kDequantize|segmented_max_reduction|ComputeScale|amax/i,
    class: 'quantization',
    family: 'vLLM, SGLang, TensorRT-LLM, bitsandbytes, Transformer Engine',
    sample:
      'void vllm::dynamic_per_token_scaled_fp8_quant_kernel<c10::Half, __nv_fp8_e4m3>(__nv_fp8_e4m3*, float*, c10::Half const*, float const*, int)',
  },
  {
    pattern: /rotary|\brope|_rope|silu|swiglu|gelu|act_and_mul|relu|geglu|swish|sigmoid|tanh_|doActivation/i,
    class: 'elementwise',
    family: 'vLLM, SGLang, TensorRT-LLM, PyTorch activations',
    sample:
      'void vllm::act_and_mul_kernel<c10::Half, vllm::silu_kernel<c10::Half>, true>(c10::Half*, c10::Half const*, int)',
  },
  {
    pattern:
      /arg_?max|arg_?min|top_?k|top_?p|sampl|multinomial|ArgMaxOps|ArgMinOps|bitonicSort|radixSort|radix_sort|RadixSort|DeviceSegmentedSort|sortKey|gatherTopK|RadixTopK|SoftmaxSample|penalt|logits|exponential_|gumbel|computeDigitCumSum|computeBlockwise|radixFind|sbtopk|mbtopk|renorm|rocprim::.*sort|Philox.*exponential|log_softmax|LogSoftMax|min_p_kernel|temperature_kernel|bad_words_kernel|grammar_bitmask|logprobs_token_ids|^_(?:bias|bincount|ranks)_kernel$/i,
    class: 'sampling',
    family: 'sampling: PyTorch top-k, sort, argmax; vLLM, SGLang, TensorRT-LLM samplers',
    sample:
      'void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(at::cuda::detail::TensorInfo<float const, unsigned int>)',
  },
  {
    pattern: /soft_?max/i,
    class: 'attention',
    family: 'softmax over scores: PyTorch eager attention',
    sample:
      'void (anonymous namespace)::softmax_warp_forward<c10::Half, c10::Half, float, 10, false, false>(c10::Half*, c10::Half const*, int, int, int)',
  },
  {
    pattern:
      /embedding|indexSelect|index_select|vectorized_gather|gather_kernel|_gather|gather_op|index_elementwise_kernel|index_kernel|lookup|take_kernel|EmbeddingBag/i,
    class: 'embedding',
    family: 'PyTorch gather and embedding',
    sample:
      'void at::native::(anonymous namespace)::indexSelectSmallIndex<c10::Half, long, unsigned int, 2, 2, -2>(at::cuda::detail::TensorInfo<c10::Half, unsigned int>)',
  },
  {
    pattern:
      /CatArrayBatchedCopy|copy_kernel|copy_device|direct_copy|LoadWithCast|transpose|permute|slice|concat|fillFunctor|FillFunctor|fill_kernel|memcpy|memset|Memcpy|Memset|copyBuffer|fillBuffer|split_kernel|stack_kernel|repeat|roll_cuda|flip_kernel|triu|tril|arange|linspace|scatter|index_put|masked_fill|CopyFunctor|bfloat16_copy|float16_copy|float8_copy|CUDAFunctor_copy|convert_kernel|cast_kernel|nchwToNhwc|nhwcToNchw|tensorTransform|copyPackedKernel|_copy_\b|pad_kernel|reflection_pad|constant_pad|cupy_(?:copy|fill)/i,
    class: 'copy',
    family: 'PyTorch casts, copies, cat, fill; layout changes of cuDNN',
    sample:
      'void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<2u>, unsigned int, 4, 64, 64>(at::native::(anonymous namespace)::OpaqueType<2u>*)',
  },
  {
    pattern: /MeanOps|NormTwoOps|NormOps|WelfordOps|MeanFunctor/,
    class: 'norm',
    family: 'PyTorch reductions of an eager norm',
    sample:
      'void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, unsigned int, float, 4, 4>>(at::native::ReduceOp<float>)',
  },
  {
    pattern:
      /elementwise_kernel|elementwise_kernel_with_index|vectorized_elementwise|unrolled_elementwise|BinaryFunctor|AUnaryFunctor|BUnaryFunctor|CUDAFunctor|distribution_elementwise|pointwise|multi_tensor_apply|fused_dropout|_kernel_impl|where_kernel|compare_|pow_tensor|bitwise|add_kernel|mul_kernel|element_?wise|op_tensor|OpTensor|scalePackedTensor|clamp_|cupy_(?!copy|fill|sum|max|min|mean|arg|dot|norm)/i,
    class: 'elementwise',
    family: 'PyTorch elementwise',
    sample:
      'void at::native::vectorized_elementwise_kernel<4, at::native::sin_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda()#2}, std::array<char*, 2ul> >(int)',
  },
  {
    pattern:
      /reduce_kernel|DeviceReduce|reduce_1Block|tensor_kernel_scan|DeviceScan|scan_kernel|cumsum|cumprod|scan_innermost|prefix_sum|reduction|^reduce_|cupy_(?:sum|max|min|mean|norm)|rocprim::.*scan|row_sum|block_reduce/i,
    class: 'norm',
    family: 'reductions and scans: PyTorch, CUB',
    sample:
      'void at::native::reduce_kernel<128, 4, at::native::ReduceOp<c10::Half, at::native::func_wrapper_t<c10::Half, at::native::sum_functor<c10::Half, float, c10::Half>::operator()>>>(at::native::ReduceOp<c10::Half>)',
  },
  {
    pattern:
      /selective_scan|mamba|ssd_|_chunk_(?:scan|state|cumsum)|_state_passing|_bmm_chunk|gated_delta|chunk_gated|fused_recurrent|wkv|linear_attn/i,
    class: 'attention',
    family: 'state-space and linear attention: Mamba, RWKV, FLA',
    sample:
      'void selective_scan_fwd_kernel<Selective_Scan_fwd_kernel_traits<128, 16, 1, true, true>>(SSMParamsBase)',
  },
  {
    pattern:
      /flash_?infer|DeviceSelect|compact|nonzero|unique|merge_sort|DeviceMergeSort|prepare_|advance_step|build_|compute_position|compute_slot|slot_mapping|resolve_future|SeqAndPaddingOffsets|BlockOffsetsToDevice|get_last_loc|write_|assign_|create_.*_indices|update_/i,
    class: 'copy',
    family: 'index preparation: CUB select, vLLM and SGLang schedulers',
    sample:
      'void vllm::advance_step_flashattn_kernel<256>(int, int, int, long*, long const*, long*, int*, long*, int const*, long)',
  },
];
