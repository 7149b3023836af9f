/** Information from the name of a GEMM kernel. */
interface GemmName {
  /** MxNxK of a thread block's tile. */
  tile: string | null;
  /** Type of the inputs: fp16, bf16, tf32, fp32, fp64, fp8, int8, … */
  dtype: string | null;
}

/**
 * | family | sample | tile | inputs |
 * | --- | --- | --- | --- |
 * | nvjet | nvjet_sm90_hsh_64x8_64x16_1x1_v_bz_TNN | 64x8, then K x stages | first letter (input, compute, output) |
 * | CUTLASS | cutlass_80_tensorop_f16_s16816gemm_relu_f16_128x64_64x4_tn_align8 | 128x64, then K x stages | after tensorop_ |
 * | CUTLASS 3 | cutlass3x_sm100_bstensorop_s256x128x64gemm_block_scaled_ue4m3xe2m1_ue4m3xe2m1_f32_bf16_bf16_128x128x256_… | after the types | after gemm, scale x element |
 * | xmma | sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize96x64x32_stage4_… | tilesize | first of the pair |
 * | cuBLAS | ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_tn | 128x64, stages_Kxn | before gemm |
 * | cuBLAS | ampere_sgemm_32x32_sliced1x4_tn | null, because K is not in the name | letter before gemm |
 * | TensorRT-LLM | bmm_Bfloat16_E4m3E4m3_Fp32_t128x16x128u2_… | t | after the output |
 * | Tensile | Cijk_Ailk_Bljk_HHS_BH_MT64x64x32_… | MT | first letter of the type |
 */
export function parseGemmName(name: string): GemmName {
  return { tile: parseTile(name), dtype: parseDtype(name) };
}

function parseTile(name: string): string | null {
  const generated = generatedGemm.exec(name);
  if (generated) return /_t(\d+x\d+x\d+)/.exec(name)?.[1] ?? null;
  const tileMatch = /(?:_MT|tilesize|cutlass3x_\w*?gemm_\w*?_)(\d+x\d+x\d+)/.exec(name);
  if (tileMatch) return tileMatch[1]!;
  const shape = /Shape<(?:cute::)?C<(\d+)>, ?(?:cute::)?C<(\d+)>, ?(?:cute::)?C<(\d+)>/.exec(name);
  const gemmShape = shape ?? /GemmShape<(?:\(int\))?(\d+), (?:\(int\))?(\d+), (?:\(int\))?(\d+)>/.exec(name);
  if (gemmShape) return gemmShape.slice(1, 4).join('x');
  const staged = /_(\d+)x(\d+)_(\d+)x\d+(?:_|$)/.exec(name);
  if (staged && /nvjet_|cutlass_|gemm/i.test(name)) return staged.slice(1, 4).join('x');
  const cublas = /gemm_(?:\w+?_)??(\d+)x(\d+)_/.exec(name);
  const depth = /stages_(\d+)x\d+/.exec(name)?.[1];
  return cublas && depth !== undefined ? `${cublas[1]}x${cublas[2]}x${depth}` : null;
}

/** nvjet and Tensile write one letter per type (input first): BLAS's s and d, then CUDA's. */
const letters: Record<string, string> = {
  h: 'fp16',
  t: 'bf16',
  b: 'bf16',
  s: 'fp32',
  d: 'fp64',
  q: 'fp8',
  o: 'fp8',
  i: 'int8',
  z: 'complex128',
  c: 'complex64',
};

const tensileTypes: Record<string, string> = {
  H: 'fp16',
  B: 'bf16',
  S: 'fp32',
  D: 'fp64',
  F8: 'fp8',
  I8: 'int8',
  X: 'tf32',
};

const words: Record<string, string> = {
  f16: 'fp16',
  fp16: 'fp16',
  h: 'fp16',
  half: 'fp16',
  half_t: 'fp16',
  __half: 'fp16',
  bf16: 'bf16',
  bfloat16_t: 'bf16',
  __nv_bfloat16: 'bf16',
  tf32: 'tf32',
  f32: 'fp32',
  s: 'fp32',
  fp32: 'fp32',
  f64: 'fp64',
  d: 'fp64',
  e4m3: 'fp8',
  float_e4m3_t: 'fp8',
  float_e5m2_t: 'fp8',
  float_e2m1_t: 'fp4',
  e5m2: 'fp8',
  e2m1: 'fp4',
  s8: 'int8',
  i: 'int8',
  i8: 'int8',
  int8: 'int8',
};

/** TensorRT-LLM's generated GEMMs: bmm_<output>_<A><B>_…; Mx has a scale per block. */
const generatedGemm = /^(?:bmm|gemm)_[A-Za-z0-9]+_((?:(?:Mx)?(?:E\dm\d|Bfloat16|Fp16|Int\d))+)_/;

/** The wider of two types, which determines the rate. */
function generatedType(inputs: string): string | null {
  const order = ['Bfloat16', 'Fp16', 'E4m3', 'E5m2', 'E2m1'];
  const names: Record<string, string> = {
    Bfloat16: 'bf16',
    Fp16: 'fp16',
    E4m3: 'fp8',
    E5m2: 'fp8',
    E2m1: 'fp4',
  };
  const widest = order.find((type) => inputs.includes(type));
  return widest === undefined ? null : names[widest]!;
}

function parseDtype(name: string): string | null {
  const generated = generatedGemm.exec(name);
  if (generated) return generatedType(generated[1]!);
  const nvjet = /^nvjet_(?:sm\d+_)?([a-z])[a-z]{2,4}_/.exec(name);
  if (nvjet) return letters[nvjet[1]!] ?? null;
  const tensile = /Cijk_\w+?_\w+?_(F8|I8|[HBSDX])\w*_/.exec(name);
  if (tensile) return tensileTypes[tensile[1]!] ?? null;
  // sm90_xmma_gemm_f32f32_tf32f32_f32_…: float32 multiplied as TF32.
  if (/xmma_\w*?gemm_f32f32_tf32/.test(name)) return 'tf32';
  const word =
    // Inputs follow "gemm", with the type of their scales before an x; the letter after tensorop_ is the accumulator's.
    /cutlass3x_\w*?gemm_(?:[a-z]+_)*?(?:ue\dm\dx)?(bf16|tf32|e2m1|e4m3|e5m2|f16|f32|f64|s8)_/.exec(
      name,
    )?.[1] ??
    /xmma_\w*?gemm_(bf16|tf32|e4m3|e5m2|f16|f32|f64|s8|i8)/.exec(name)?.[1] ??
    /(?:tensorop|simt|wmma)_(bf16|tf32|e4m3|e5m2|f16|f32|f64|s8|h|s|d)(?=_|[hsdi]?\d|[a-z]*gemm)/.exec(
      name,
    )?.[1] ??
    /(?:ampere|volta|turing|hopper|maxwell|sm\d+)_(bf16|fp16|tf32|fp32|int8|h|s|d|i)_?\w*?gemm/.exec(
      name,
    )?.[1] ??
    /gemv\w*<.*?(__half|__nv_bfloat16|half_t|bfloat16_t)/.exec(name)?.[1] ??
    /cutlass::(half_t|bfloat16_t|float_e\dm\d_t)/.exec(name)?.[1];
  return word === undefined ? null : (words[word] ?? null);
}
