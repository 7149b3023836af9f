import type { DType } from '../model/dtype.js';
import { InferscopeError } from '../model/errors.js';
import type { Component } from './tensors.js';
import { blocks, unquantized, type BlockFormat, type WeightFormat } from './storage.js';

interface Scheme {
  linear: BlockFormat;
  /** All matrices are stored this way, including embeddings and lm_head (GGUF block types used alone). */
  everywhere?: boolean;
  /** An untied lm_head is stored this way too. */
  lmHead?: boolean;
  compute?: DType;
}

/**
 * Bytes per weight of each scheme, from the formats' definitions: weight + scale + zero point.
 * - GPTQ, AWQ: 4-bit weights, per group a 16-bit scale and a 4-bit zero point.
 * - int4: symmetric weights of compressed-tensors, per group a 16-bit scale.
 * - fp8: one float32 scale per row, per 128 × 128 block (DeepSeek V3), or per tensor, which is not counted. int8: one
 * float32 scale per row.
 * - mxfp4: an 8-bit exponent (E8M0) per 32 (OCP MX 1.0); weights only, as gpt-oss is run. nvfp4: an fp8 scale per 16
 * and a float32 per matrix; multiplied in 4 bits if the GPU can.
 * - bnb-nf4: a float32 absmax per 64; double-quantized: an 8-bit one per 64 and a float32 per 256 of those (QLoRA,
 * section 3).
 * - matmulnbits: ONNX Runtime's com.microsoft.MatMulNBits, block 32 with a float32 scale, 4-bit zero point if present.
 * - gguf: ggml's block layouts (18 bytes per 32 weights in Q4_0, 144 per 256 in Q4_K …). A file mixes block types.
 */
const schemes = {
  'gptq-int4-g128': { linear: blocks(0.5, 128, 2 + 0.5) },
  'gptq-int4-g32': { linear: blocks(0.5, 32, 2 + 0.5) },
  'awq-int4-g128': { linear: blocks(0.5, 128, 2 + 0.5) },
  'int4-g32': { linear: blocks(0.5, 32, 2) },
  'int4-g128': { linear: blocks(0.5, 128, 2) },
  'fp8-row': { linear: blocks(1, Infinity, 4), compute: 'float8' },
  'fp8-tensor': { linear: unquantized('float8'), compute: 'float8' },
  'fp8-block128': {
    linear: { bytesPerWeight: 1, scale: { rows: 128, columns: 128, bytes: 4 } },
    compute: 'float8',
  },
  'int8-row': { linear: blocks(1, Infinity, 4), compute: 'int8' },
  mxfp4: { linear: blocks(0.5, 32, 1) },
  nvfp4: { linear: { ...blocks(0.5, 16, 1), matrixBytes: 4 }, compute: 'nvfp4' },
  'bnb-nf4': { linear: blocks(0.5, 64, 4) },
  'bnb-nf4-double': { linear: blocks(0.5, 64, 1 + 4 / 256) },
  'matmulnbits-int4': { linear: blocks(0.5, 32, 4), lmHead: true },
  'matmulnbits-int4-zero-point': { linear: blocks(0.5, 32, 4 + 0.5), lmHead: true },
  'gguf-q4_0': { linear: blocks(0.5, 32, 2), everywhere: true },
  'gguf-q5_0': { linear: blocks(0.625, 32, 2), everywhere: true },
  'gguf-q8_0': { linear: blocks(1, 32, 2), everywhere: true },
  'gguf-q2_k': { linear: blocks(0.25, 256, 20), everywhere: true },
  'gguf-q3_k': { linear: blocks(0.375, 256, 14), everywhere: true },
  'gguf-q4_k': { linear: blocks(0.5, 256, 16), everywhere: true },
  'gguf-q5_k': { linear: blocks(0.625, 256, 16), everywhere: true },
  'gguf-q6_k': { linear: blocks(0.75, 256, 18), everywhere: true },
} satisfies Record<string, Scheme>;

export type SchemeName = keyof typeof schemes;
export const schemeNames = Object.keys(schemes) as SchemeName[];

/**
 * The weight format of a quantization scheme. `rest` is the dtype of unquantized weights: norms and biases, and, unless
 * the scheme covers them, embeddings and lm_head.
 */
export function quantizedWeights(name: SchemeName, rest: DType): WeightFormat {
  const scheme: Scheme = schemes[name];
  const plain = unquantized(rest);
  const { linear, everywhere = false, lmHead = false, compute = null } = scheme;
  return {
    name,
    linear,
    lmHead: everywhere || lmHead ? linear : plain,
    embedding: everywhere ? linear : plain,
    rest,
    compute,
  };
}

/** @throws E_DTYPE with the known schemes */
export function parseScheme(text: string): SchemeName {
  const key = text.trim().toLowerCase();
  const scheme = schemeNames.find((name) => name === key);
  if (scheme) return scheme;
  throw new InferscopeError('E_DTYPE', {
    what: `unknown quantization scheme "${text}"`,
    why: `Known schemes: ${schemeNames.join(', ')}.`,
    fix: 'Give one of these, or a dtype such as bfloat16 for unquantized weights.',
  });
}

/**
 * The weight format declared by a config.json: `quantization_config`, else `torch_dtype` (`dtype` in newer files). Null
 * if it declares neither, or an unknown scheme.
 */
export function declaredWeights(config: Record<string, unknown>): WeightFormat | null {
  const dtype = declaredDType(config);
  const quantization = config['quantization_config'];
  if (typeof quantization !== 'object' || quantization === null) {
    if (dtype === null) return null;
    const plain = unquantized(dtype);
    return { name: dtype, linear: plain, lmHead: plain, embedding: plain, rest: dtype, compute: null };
  }
  const scheme = declaredScheme(quantization as Record<string, unknown>);
  if (!scheme) return null;
  const unquantizedComponents = unquantizedModules(config, quantization as Record<string, unknown>);
  return {
    ...quantizedWeights(scheme, dtype ?? 'float16'),
    ...(unquantizedComponents.length > 0 ? { unquantizedComponents } : {}),
  };
}

/** Modules that a checkpoint leaves unquantized in all layers, such as attention in gpt-oss and most NVFP4 checkpoints. */
function unquantizedModules(config: Record<string, unknown>, q: Record<string, unknown>): Component[] {
  const listed = [q['modules_to_not_convert'], q['ignore'], q['exclude_modules']].find(Array.isArray) ?? [];
  const names = (listed as unknown[]).filter((name) => typeof name === 'string');
  const layers = config['num_hidden_layers'];
  const isUnquantized = (module: RegExp): boolean => {
    const matches = names.filter((name) => module.test(name));
    const numbered = matches.map((name) => /layers\.(\d+)\./.exec(name)?.[1]);
    // A name without a number, or with a wildcard, applies to every layer.
    return numbered.includes(undefined) || (matches.length > 0 && new Set(numbered).size === layers);
  };
  return [
    ...(isUnquantized(/attn|attention/) ? (['attention'] as const) : []),
    ...(isUnquantized(/shared_expert/) ? (['shared_experts'] as const) : []),
  ];
}

export function declaredDType(config: Record<string, unknown>): DType | null {
  const text = config['text_config'];
  const inner = typeof text === 'object' && text !== null ? (text as Record<string, unknown>) : {};
  const name = inner['torch_dtype'] ?? inner['dtype'] ?? config['torch_dtype'] ?? config['dtype'];
  return name === 'float32' || name === 'float16' || name === 'bfloat16' ? name : null;
}

function declaredScheme(q: Record<string, unknown>): SchemeName | null {
  const { quant_method: method, bits, group_size: group } = q;
  if (method === 'gptq' && bits === 4) {
    return group === 128 ? 'gptq-int4-g128' : group === 32 ? 'gptq-int4-g32' : null;
  }
  if (method === 'awq' && bits === 4 && group === 128) return 'awq-int4-g128';
  if (method === 'fp8' || method === 'fbgemm_fp8') {
    const block = q['weight_block_size'];
    if (block === undefined || block === null) return 'fp8-row';
    return Array.isArray(block) && block[0] === 128 && block[1] === 128 ? 'fp8-block128' : null;
  }
  if (method === 'bitsandbytes' && q['load_in_4bit'] === true && q['bnb_4bit_quant_type'] === 'nf4') {
    return q['bnb_4bit_use_double_quant'] === true ? 'bnb-nf4-double' : 'bnb-nf4';
  }
  if (method === 'modelopt') {
    return q['quant_algo'] === 'NVFP4' ? 'nvfp4' : q['quant_algo'] === 'FP8' ? 'fp8-tensor' : null;
  }
  if (method === 'compressed-tensors') return compressedScheme(q['config_groups']);
  if (typeof method === 'string' && method.startsWith('modelopt')) {
    return q['quant_algo'] === 'NVFP4' || method === 'modelopt_fp4' ? 'nvfp4' : null;
  }
  return method === 'mxfp4' ? 'mxfp4' : null;
}

/**
 * The format that llm-compressor writes and vLLM reads: one group for all linear layers; several groups are several
 * formats.
 */
function compressedScheme(groups: unknown): SchemeName | null {
  const [only, ...more] = Object.values(record(groups));
  if (only === undefined || more.length > 0) return null;
  const { weights, input_activations: inputs } = record(only);
  const { num_bits: bits, type, strategy, group_size: group, symmetric } = record(weights);
  if (type === 'float' && bits === 8) {
    return strategy === 'channel' ? 'fp8-row' : strategy === 'tensor' ? 'fp8-tensor' : null;
  }
  if (type === 'float' && bits === 4) return group === 16 ? 'nvfp4' : group === 32 ? 'mxfp4' : null;
  if (type === 'int' && bits === 4 && symmetric === true && strategy === 'group' && !inputs)
    return group === 32 ? 'int4-g32' : group === 128 ? 'int4-g128' : null;
  return type === 'int' && bits === 8 && strategy === 'channel' && inputs ? 'int8-row' : null;
}

const record = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
