import type { OpClass } from '../model/classes.js';

/** Shape of the test profile's workload, and its operators with time and work. */
export const layers = 8;
export const repeats = 12;
export const steps = 31;

export interface Template {
  name: string;
  op_type: string;
  class: OpClass;
  layer: number | null;
  /** µs in a prefill of 128 tokens and in one decode step. */
  prefill_us: number;
  decode_us: number;
  /** MFLOP and kB per decode step; prefill has 128 times the FLOPs. */
  mflop: number;
  kb: number;
}

/** Seeded random numbers in [0, 1). */
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function layerTemplates(layer: number): Template[] {
  const op = (
    role: string,
    op_type: string,
    opClass: OpClass,
    times: [prefill_us: number, decode_us: number],
    work: [mflop: number, kb: number],
  ): Template => ({
    name: `/model/layers.${layer}/${role}/${op_type}`,
    op_type,
    class: opClass,
    layer,
    prefill_us: times[0],
    decode_us: times[1],
    mflop: work[0],
    kb: work[1],
  });
  return [
    op('input_layernorm', 'SkipSimplifiedLayerNormalization', 'norm', [62, 2.4], [0.003, 8]),
    op('self_attn/q_proj', 'MatMul', 'gemm', [410, 52], [0.52, 1049]),
    op('self_attn/k_proj', 'MatMul', 'gemm', [206, 27], [0.26, 524]),
    op('self_attn/v_proj', 'MatMul', 'gemm', [204, 27], [0.26, 524]),
    op('self_attn', 'GroupQueryAttention', 'attention', [520, 38], [0.33, 330]),
    op('self_attn/o_proj', 'MatMul', 'gemm', [412, 53], [0.52, 1049]),
    op('post_attention_layernorm', 'SkipSimplifiedLayerNormalization', 'norm', [61, 2.3], [0.003, 8]),
    op('mlp/gate_proj', 'MatMul', 'gemm', [920, 97], [1.44, 2884]),
    op('mlp/up_proj', 'MatMul', 'gemm', [915, 96], [1.44, 2884]),
    op('mlp/act', 'Sigmoid', 'elementwise', [118, 2.1], [0, 0]),
    op('mlp/act_mul', 'Mul', 'elementwise', [74, 1.4], [0, 0]),
    op('mlp/mul', 'Mul', 'elementwise', [75, 1.5], [0.003, 17]),
    op('mlp/down_proj', 'MatMul', 'gemm', [905, 95], [1.44, 2884]),
  ];
}

const outside = { layer: null, mflop: 0 };
export const templates: Template[] = [
  {
    ...outside,
    name: '/model/embed_tokens/Gather',
    op_type: 'Gather',
    class: 'embedding',
    prefill_us: 21,
    decode_us: 1.8,
    kb: 2,
  },
  {
    ...outside,
    name: '/model/attn_mask/Cast',
    op_type: 'Cast',
    class: 'copy',
    prefill_us: 3,
    decode_us: 1.6,
    kb: 0,
  },
  ...Array.from({ length: layers }, (_, layer) => layerTemplates(layer)).flat(),
  {
    ...outside,
    name: '/model/norm/SimplifiedLayerNormalization',
    op_type: 'SimplifiedLayerNormalization',
    class: 'norm',
    prefill_us: 60,
    decode_us: 2.4,
    kb: 6,
  },
  {
    ...outside,
    name: '/lm_head/MatMul',
    op_type: 'MatMul',
    class: 'gemm',
    prefill_us: 830,
    decode_us: 820,
    mflop: 8.2,
    kb: 16_384,
  },
];

export const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0);

export const peakFlops = 208e9;
export const bandwidth = 28.4e9;
