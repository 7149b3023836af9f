import type { OpClass } from '../../model/classes.js';

/** PyTorch operators by name, first match wins; containers such as aten::linear have the class of their contents. */
const opClassRules: readonly { pattern: RegExp; class: OpClass }[] = [
  {
    pattern: /^(?:nccl|c10d|_c10d_functional|record_param_comms|vllm::all_reduce|vllm::all_gather)/,
    class: 'communication',
  },
  { pattern: /quantize|scaled_fp8|_fp8_|awq_dequantize|per_token_group/i, class: 'quantization' },
  {
    pattern:
      /scaled_dot_product|attention|flash|_fmha|fmha|paged_attn|mha_(?:fwd|varlen)|efficient_attention|(?:^|::)_?(?:safe_)?softmax/i,
    class: 'attention',
  },
  {
    pattern:
      /(?:^|::)(?:_?(?:add|b|ba|addb)?mm(?:_out)?|matmul|linear|addmv|mv|dot|einsum|conv\w*|_?convolution|cudnn_convolution|_scaled_mm|_int_mm|_grouped_mm)$|gemm|marlin|fused_moe|fused_experts|cutlass_scaled_mm/i,
    class: 'gemm',
  },
  {
    pattern:
      /(?:layer|rms|group|batch|l2)_?norm|^aten::(?:mean|norm|linalg_vector_norm|rsqrt|var|sum|cumsum|prod|amax|max|min|std)$/i,
    class: 'norm',
  },
  {
    pattern:
      /^aten::(?:arg(?:max|min|sort)|topk|sort|multinomial|exponential_|log_softmax|_log_softmax|bernoulli_?)$|sampl|top_k|top_p/i,
    class: 'sampling',
  },
  {
    pattern: /^aten::(?:embedding|index_select|gather|index|take|_embedding_bag)$|embedding/i,
    class: 'embedding',
  },
  {
    pattern:
      /^aten::(?:copy_|_to_copy|to|clone|contiguous|cat|_cat|stack|fill_|zero_|zeros\w*|ones\w*|full\w*|empty\w*|resize_|slice|select|transpose|t|permute|view|_unsafe_view|reshape|_reshape_alias|expand|as_strided|unsqueeze|squeeze|split\w*|chunk|narrow|unbind|repeat\w*|repeat_interleave|arange|index_put_?|_index_put_impl_|index_copy_|scatter\w*|masked_fill_?|triu\w*|tril\w*|pad|constant_pad_nd|lift_fresh|detach_?|item|_local_scalar_dense|is_nonzero|is_pinned|pin_memory|_pin_memory|flatten|roll|flip|result_type|set_|alias|expand_as|view_as|numpy_T)$|reshape_and_cache|kv_cache/,
    class: 'copy',
  },
  {
    pattern:
      /^aten::(?:add|sub|mul|div|pow|neg|exp|log|sqrt|cos|sin|tanh|sigmoid|silu|gelu|relu|where|eq|ne|lt|le|gt|ge|bitwise_\w+|__\w+__|logical_\w+|clamp\w*|abs|reciprocal|rsub|erf|floor\w*|remainder|fmod|round|dropout|normal|random|uniform|all|any|isin|isnan|isinf|isneginf|nan_to_num|addcmul|addcdiv|lerp|maximum|minimum|hardtanh|leaky_relu|mish|softplus|glu|randn|rand|randint)_?$|act_and_mul|silu|rotary|triton_poi/i,
    class: 'elementwise',
  },
];

/** @param name e.g. aten::mm; `other` if no rule matches */
export function opClassOf(name: string): OpClass {
  return opClassRules.find(({ pattern }) => pattern.test(name))?.class ?? 'other';
}
