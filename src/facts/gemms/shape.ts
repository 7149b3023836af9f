/** A row-major matrix multiplication: (m × k) · (k × n), `batch` times. */
export interface GemmShape {
  m: number;
  n: number;
  k: number;
  batch: number;
}

/** Positions of an operator's matrices among its inputs; types have the same positions. */
const operators: Record<string, { a: number; b: number; transposed?: boolean }> = {
  'aten::mm': { a: 0, b: 1 },
  'aten::bmm': { a: 0, b: 1 },
  'aten::mv': { a: 0, b: 1 },
  'aten::addmm': { a: 1, b: 2 },
  'aten::addmv': { a: 1, b: 2 },
  'aten::baddbmm': { a: 1, b: 2 },
  'aten::_addmm_activation': { a: 1, b: 2 },
  'aten::_scaled_mm': { a: 0, b: 1 },
  'aten::_int_mm': { a: 0, b: 1 },
  // Launches kernels itself only if it does not call one of the above; its weight is (out, in).
  'aten::linear': { a: 0, b: 1, transposed: true },
};

export const gemmOperators = Object.keys(operators);

/**
 * @param inputShapes JSON of `ops.input_shapes`: `[[64,512],[512,1408]]`, with `[]` for inputs that are not tensors
 * @returns null if the shapes are not those of a matrix multiplication
 */
export function operatorShape(name: string, inputShapes: string): GemmShape | null {
  const operator = operators[name];
  if (!operator) return null;
  const shapes = JSON.parse(inputShapes) as unknown;
  if (!Array.isArray(shapes)) return null;
  const a = dimensions(shapes[operator.a]);
  const b = dimensions(shapes[operator.b]);
  if (a.length === 0 || b.length === 0) return null;
  const k = a.at(-1)!;
  const n = b.length === 1 ? 1 : operator.transposed ? b.at(-2)! : b.at(-1)!;
  const inner = b.length === 1 || operator.transposed ? b.at(-1)! : b.at(-2)!;
  if (inner !== k) return null;
  const product = (list: number[]) => list.reduce((x, y) => x * y, 1);
  if (b.length > 2) return { m: a.at(-2)!, n, k, batch: product(b.slice(0, -2)) };
  return { m: product(a.slice(0, -1)), n, k, batch: 1 };
}

function dimensions(value: unknown): number[] {
  return Array.isArray(value) && value.every((size) => typeof size === 'number') ? value : [];
}

/** Type of the first matrix: "c10::Half" -> float16. */
export function operatorType(name: string, inputTypes: string | null): string | null {
  const list = JSON.parse(inputTypes ?? '[]') as unknown;
  const type: unknown = Array.isArray(list) ? list[operators[name]?.a ?? 0] : null;
  if (typeof type !== 'string' || type === '') return null;
  const bare = type.replace(/^c10::/, '');
  return types[bare] ?? bare.toLowerCase().replace(/^float8_(\w+?)fn$/, 'float8_$1');
}

const types: Record<string, string> = {
  Half: 'float16',
  BFloat16: 'bfloat16',
  float: 'float32',
  double: 'float64',
  'signed char': 'int8',
  'unsigned char': 'uint8',
};

export function flopOf({ m, n, k, batch }: GemmShape): number {
  return 2 * m * n * k * batch;
}

/** Bytes per element; null for an unknown type. */
export function elementBytes(dtype: string | null): number | null {
  const bits = /(\d+)/.exec(dtype?.replace(/^b/, '') ?? '')?.[1];
  return bits === undefined ? null : Number(bits) / 8;
}

/**
 * Tensor cores load 16 bytes at a time. The contiguous dimensions, K of both operands and N of the output, must be
 * multiples of 16 bytes, otherwise the library uses slower kernels (NVIDIA, Matrix Multiplication Background User's
 * Guide, section 3.1). M only costs part of a tile.
 */
export function alignmentFaults({ n, k }: GemmShape, dtype: string | null): string[] {
  const bytes = elementBytes(dtype);
  if (bytes === null || bytes > 4) return [];
  const multiple = 16 / bytes;
  return Object.entries({ K: k, N: n })
    .filter(([, size]) => size % multiple !== 0)
    .map(
      ([dimension, size]) => `${dimension} = ${size} is not a multiple of ${multiple} (16 bytes of ${dtype})`,
    );
}
