/** The purpose of a kernel that only moves data, from its name. */
export type CopyRole = 'cat' | 'cast' | 'constant' | 'layout';

/**
 * SQL conditions on `name`, tried in this order. Concatenations: PyTorch's CatArrayBatchedCopy, Triton's fused_cat, others'
 * concat. Casts: PyTorch's loads and stores with a cast, its copies named after the type they write; Triton's _to_copy
 * alone. Constants: tensors written without reading one (filled, numbered, the triangle of a mask; a masked fill reads what it masks). Layout copies: PyTorch's copy of a strided view (contiguous, reshape, repeat_interleave), transposes.
 */
export const copyRoles: Record<CopyRole, string> = {
  cat: `regexp_matches(name, 'CatArray|_fused_cat_|concat', 'i') AND NOT regexp_matches(name, 'concat_and_cache', 'i')`,
  cast: `regexp_matches(name, 'LoadWithCast|StoreWithCast|(float16|float8|half|bfloat16)_copy_kernel|(^|_)cast(_|$)|convert_kernel|triton_poi_fused__to_copy_\\d+$', 'i')`,
  constant: `regexp_matches(name, 'Fill(Functor|Value)|fill_kernel|fillBuffer|triu_tril|_(triu|tril)_|arange|linspace|eye_kernel|triton_poi_fused_(zeros|ones|full)(_like)?_\\d+$', 'i') AND NOT regexp_matches(name, '(masked|index)_fill', 'i')`,
  layout: `regexp_matches(name, 'direct_copy_kernel|transpose|permute|contiguous|nchwToNhwc|nhwcToNchw|repeat_interleave|copy_device_to_device|triton_poi_fused_clone_\\d+$', 'i')`,
};

/** SQL of a kernel's role by `name`; null for other kernels. */
export const copyRoleSql = `CASE ${Object.entries(copyRoles)
  .map(([role, condition]) => `WHEN ${condition} THEN '${role}'`)
  .join(' ')} END`;

interface NamedKernel {
  class: string;
  name: string;
}

/** A separate softmax kernel over scores in memory. */
export const isSoftmax = (kernel: NamedKernel): boolean =>
  kernel.class === 'attention' && /soft_?max/i.test(kernel.name) && !/flash|fmha|sdpa/i.test(kernel.name);
/** One kernel for the whole of attention. */
export const isFusedAttention = (kernel: NamedKernel): boolean =>
  kernel.class === 'attention' && !isSoftmax(kernel);
/** Softmax operators of PyTorch. */
export const softmaxOperators = "regexp_matches(name, '(^|::)_?(safe_)?softmax$')";
