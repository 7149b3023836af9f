const labels: Readonly<Record<string, string>> = {
  'gptq-int4-g128': 'GPTQ int4, group 128',
  'gptq-int4-g32': 'GPTQ int4, group 32',
  'awq-int4-g128': 'AWQ int4, group 128',
  'int4-g32': 'int4, group 32',
  'int4-g128': 'int4, group 128',
  'fp8-row': 'per-channel FP8',
  'fp8-tensor': 'per-tensor FP8',
  'fp8-block128': 'FP8 in 128×128 blocks',
  'int8-row': 'per-channel INT8',
  mxfp4: 'MXFP4',
  nvfp4: 'NVFP4',
  'bnb-nf4': 'bitsandbytes NF4',
  'bnb-nf4-double': 'bitsandbytes NF4, double quantization',
  'matmulnbits-int4': 'MatMulNBits int4, block 32',
  'matmulnbits-int4-zero-point': 'MatMulNBits int4, block 32, with zero points',
};

/** What people call a weight format (SchemeName of llm/quantization.ts, or a dtype): "per-channel FP8", "GGUF Q4_K". */
export const weightFormatLabel = (name: string): string =>
  labels[name] ?? (name.startsWith('gguf-') ? `GGUF ${name.slice('gguf-'.length).toUpperCase()}` : name);
