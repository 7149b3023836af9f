import type { OpClass } from '../../model/classes.js';

/**
 * Inductor names a fused kernel after its operators: triton_<pointwise poi | persistent reduction per | reduction red |
 * template tem>_fused_<op>_<op>_<number>. Its class is that of the most expensive operator, in the order of this list.
 * A name truncated by Inductor's length limit is classified by the remaining part.
 */
const fusedOps: readonly { pattern: RegExp; class: OpClass }[] = [
  { pattern: /(?:^|_)(?:all_reduce|all_gather|reduce_scatter|all_to_all)/, class: 'communication' },
  { pattern: /scaled_dot_product|flex_attention|flash_attention/, class: 'attention' },
  { pattern: /(?:^|_)(?:add)?b?a?mm(?:_|$)|matmul|convolution|(?:^|_)linear(?:_|$)/, class: 'gemm' },
  { pattern: /native_layer_norm|layer_norm|rms_norm|rsqrt|group_norm/, class: 'norm' },
  { pattern: /arg_?max|top_?k|(?:^|_)sort|multinomial|log_softmax|exponential/, class: 'sampling' },
  { pattern: /soft_?max/, class: 'attention' },
  { pattern: /embedding|index_select|(?:^|_)gather/, class: 'embedding' },
  { pattern: /quantize|float8|fp8|(?:^|_)amax/, class: 'quantization' },
  { pattern: /(?:^|_)(?:mean|sum|var|cumsum|norm|prod|max|min|logsumexp)(?:_|$)/, class: 'norm' },
  {
    pattern:
      /(?:^|_)(?:silu|gelu|relu|sigmoid|tanh|mul|add|sub|div|pow|exp|neg|cos|sin|sqrt|where|ge|gt|le|lt|eq|ne|clamp|masked_fill|bitwise\w*|logical\w*|abs|log|rsub|erf|dropout|reciprocal)(?:_|$)/,
    class: 'elementwise',
  },
  {
    pattern:
      /clone|copy|_to_copy|cat|view|transpose|permute|slice|select|stack|fill|zeros|ones|empty|full|arange|expand|unsqueeze|squeeze|reshape|index|scatter|constant_pad|lift_fresh|split|repeat|triu|tril|convert_element_type/,
    class: 'copy',
  },
];

/**
 * Classes that a pointwise kernel never computes: a GEMM or attention in its name runs before or after it, or is an
 * outer product (rotary angles: bmm of one row and one column).
 */
const reducingClasses: ReadonlySet<OpClass> = new Set(['gemm', 'attention']);

/** Operators that Inductor calls as they are: in the name of a kernel that it generates, they run before or after it. */
const calledOps = /_*scaled_dot_product_\w+?_attention/g;

const inductor = /^triton_(poi|per|red|tem|for|helion|mm|bmm|flex)_?(?:fused_)?(.*?)(?:_\d+(?:d\w*)?)?$/;

/** @returns null if the name is not one of Inductor's */
export function tritonClass(name: string): OpClass | null {
  const match = inductor.exec(name);
  if (!match) return null;
  const [, kind] = match;
  const generated = kind === 'poi' || kind === 'per' || kind === 'red';
  const ops = generated ? match[2]!.replaceAll(calledOps, '') : match[2]!;
  const classes = fusedOps.flatMap(({ pattern, class: opClass }) => (pattern.test(ops) ? [opClass] : []));
  const computed = classes.filter((opClass) => !(kind === 'poi' && reducingClasses.has(opClass)));
  // One sum per row: that of the norm, and the GEMM is an outer product.
  const opClass = generated && computed[0] === 'gemm' && computed.includes('norm') ? 'norm' : computed[0];
  if (opClass) return opClass;
  if (kind === 'tem' || kind === 'mm' || kind === 'bmm') return 'gemm';
  if (kind === 'flex') return 'attention';
  return kind === 'poi' || kind === 'for' ? 'elementwise' : 'norm';
}
