import type { Side } from './side.js';

/** Attention libraries by kernel name: the first matching pattern counts. Each has a sample name for tests. */
const implementations: readonly { name: string; pattern: RegExp; sample: string }[] = [
  {
    name: 'FlashInfer',
    pattern:
      /flashinfer|Batch(?:Decode|Prefill)With\w*KVCache|SinglePrefillWithKVCache|SingleDecodeWithKVCache/,
    sample: 'void flashinfer::BatchDecodeWithPagedKVCacheKernel<…>',
  },
  {
    name: 'FlashAttention 3',
    pattern: /FlashAttnFwdSm\d+|FlashAttnFwdCombine|flash::enable_sm90|flash_fwd_hopper/,
    sample: 'void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<…>>>',
  },
  {
    name: 'cuDNN attention',
    pattern: /cudnn.*(?:sdpa|fmha|flash|attention)/i,
    sample: 'cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128',
  },
  {
    name: 'FlashAttention 2',
    pattern: /flash_fwd|flash::|flash_attn/,
    sample: 'void pytorch_flash::flash_fwd_splitkv_kernel<pytorch_flash::Flash_fwd_kernel_traits<…>>',
  },
  {
    name: 'memory-efficient (CUTLASS FMHA)',
    pattern: /fmha_cutlass|AttentionKernel<|attention_kernel_batched/,
    sample: 'fmha_cutlassF_f16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<…>::Params)',
  },
  {
    name: 'paged attention (vLLM)',
    pattern: /paged_attention|single_query_cached_kv_attention/,
    sample: 'void vllm::paged_attention_v2_kernel<…>',
  },
  {
    name: 'TensorRT-LLM attention',
    pattern: /masked_multihead_attention|mmha|fmha_v2|xqa|fmhaSm\d+/i,
    sample: 'void tensorrt_llm::kernels::mmha::masked_multihead_attention_kernel<…>',
  },
  {
    name: 'AITER / CK attention',
    pattern: /aiter.*(?:fmha|mla|pa_)|ck_tile::Fmha|kernel_func_fmha/i,
    sample: 'ck_tile::FmhaFwdKernel<…>',
  },
  {
    name: 'Triton attention',
    pattern: /unified_attention|_attn_fwd|_fwd_grouped_kernel|_fwd_kernel(?:_stage\d)?$|triton.*attention/,
    sample: 'kernel_unified_attention_3d',
  },
];

/** Operators that name the choice of scaled_dot_product_attention. */
const operatorNames: readonly { name: string; pattern: RegExp }[] = [
  { name: 'unfused (SDPA math)', pattern: /_scaled_dot_product_attention_math/ },
];

const softmax = /softmax/i;

/**
 * Attention implementations of a phase by kernel names. Softmax kernels without fused attention mean two GEMMs with a
 * softmax between them: PyTorch's math fallback or a model's eager code, which only operators distinguish.
 */
export function attentionOf(side: Pick<Side, 'kernels' | 'attention_operators'>, phase: string): string[] {
  const phaseKernels = side.kernels.filter((kernel) => kernel.phase === phase);
  const fused = phaseKernels.flatMap(({ name }) => implementationOf(name) ?? []);
  if (fused.length > 0) return [...new Set(fused)].sort();
  // A softmax over the vocabulary belongs to sampling.
  if (!phaseKernels.some(({ name, class: opClass }) => softmax.test(name) && opClass !== 'sampling'))
    return [];
  const { attention_operators: operators } = side;
  if (operators === null) return ['unfused (math or eager)'];
  const named = operatorNames.find(({ pattern }) => operators.some((name) => pattern.test(name)));
  return [named?.name ?? 'unfused (eager)'];
}

/** The attention library of a kernel; null if no pattern matches. */
export function implementationOf(kernel: string): string | null {
  return implementations.find(({ pattern }) => pattern.test(kernel))?.name ?? null;
}

/** For tests: each implementation with a sample kernel. */
export const attentionSamples = implementations.map(({ name, sample }) => ({ name, sample }));
