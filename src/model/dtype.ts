import { InferscopeError } from './errors.js';

/**
 * Full dtype names are printed; common short forms are accepted. nvfp4 and mxfp4 are both 4-bit floats (E2M1), with one scale per 16 and
 * per 32 values; hardware supports one or both.
 */
export const dtypes = ['float32', 'float16', 'bfloat16', 'float8', 'int8', 'int4', 'nvfp4', 'mxfp4'] as const;
export type DType = (typeof dtypes)[number];

const shortForms: Record<string, DType> = {
  fp32: 'float32',
  f32: 'float32',
  float: 'float32',
  fp16: 'float16',
  f16: 'float16',
  half: 'float16',
  bf16: 'bfloat16',
  fp8: 'float8',
  f8: 'float8',
  i8: 'int8',
  i4: 'int4',
  fp4: 'nvfp4',
  f4: 'nvfp4',
  float4: 'nvfp4',
};

/** The full name of a recorded dtype; other names unchanged. */
export const fullDType = (text: string): string =>
  Object.hasOwn(shortForms, text) ? shortForms[text]! : text;

/** @throws E_DTYPE naming the accepted names */
export const parseDType = (text: string): DType => dtypeAmong(text, dtypes);

/** @param known listed in the error */
export function dtypeAmong(text: string, known: readonly string[]): DType {
  const key = text.trim().toLowerCase();
  const dtype = shortForms[key] ?? dtypes.find((name) => name === key);
  if (dtype) return dtype;
  throw new InferscopeError('E_DTYPE', {
    what: `unknown dtype "${text}"`,
    why: `Known dtypes: ${known.join(', ')} (short forms such as fp16, bf16, fp8, i8).`,
    fix: `Type for example --dtype float32.`,
  });
}

/** Bytes per element, without scales and zero points of quantized formats. */
export const bytesPerElement: Record<DType, number> = {
  float32: 4,
  float16: 2,
  bfloat16: 2,
  float8: 1,
  int8: 1,
  int4: 0.5,
  nvfp4: 0.5,
  mxfp4: 0.5,
};
