import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { onnx } from 'onnx-proto';

/** A tensor as an ONNX file stores it. */
export interface StoredTensor {
  dims: number[];
  /** TensorProto.DataType: 1 float32, 2 uint8, 7 int64. */
  type: number;
  bytes: Buffer;
}

/** Reads an ONNX file with the ONNX project's own protobuf definition, including external data. */
export function readOnnx(path: string): { model: onnx.ModelProto; tensors: Map<string, StoredTensor> } {
  const model = onnx.ModelProto.decode(readFileSync(path));
  const tensors = new Map<string, StoredTensor>();
  for (const tensor of model.graph?.initializer ?? []) {
    const entries = new Map((tensor.externalData ?? []).map(({ key, value }) => [key, value]));
    const location = entries.get('location');
    const bytes = location
      ? readRange(join(dirname(path), location), Number(entries.get('offset')), Number(entries.get('length')))
      : Buffer.from(tensor.rawData ?? []);
    tensors.set(tensor.name ?? '', {
      dims: (tensor.dims ?? []).map(Number),
      type: tensor.dataType ?? 0,
      bytes,
    });
  }
  return { model, tensors };
}

function readRange(path: string, offset: number, length: number): Buffer {
  const file = openSync(path, 'r');
  try {
    const buffer = Buffer.alloc(length);
    const read = readSync(file, buffer, 0, length, offset);
    if (read !== length) throw new Error(`${path} ends at ${offset + read}, tensor needs ${offset + length}`);
    return buffer;
  } finally {
    closeSync(file);
  }
}

function floats({ bytes }: StoredTensor): Float64Array {
  return Float64Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(i * 4));
}

/** Weights by their checkpoint names, in float64: linear layers as [out][in], int4 ones dequantized. */
export interface Weights {
  matrix(name: string): Float64Array[];
  vector(name: string): Float64Array;
  /** True when the linear layer of this name is stored as int4. */
  isInt4(name: string): boolean;
}

export function weightsOf(tensors: Map<string, StoredTensor>): Weights {
  const get = (name: string): StoredTensor => {
    const tensor = tensors.get(name);
    if (!tensor) throw new Error(`no tensor ${name}`);
    return tensor;
  };
  return {
    vector: (name) => floats(get(name)),
    isInt4: (name) => tensors.has(`${name}_Q4`),
    matrix(name) {
      if (tensors.has(`${name}_Q4`)) return dequantize(get(`${name}_Q4`), floats(get(`${name}_scales`)));
      const tensor = get(name);
      const values = floats(tensor);
      const [rows, columns] = tensor.dims as [number, number];
      // Embedding-like tables are stored [vocab, hidden]; MatMul weights [in, out].
      if (name.includes('embed_tokens')) {
        return Array.from({ length: rows }, (_, r) => values.slice(r * columns, (r + 1) * columns));
      }
      return Array.from({ length: columns }, (_, out) =>
        Float64Array.from({ length: rows }, (__, input) => values[input * columns + out]!),
      );
    },
  };
}

/** MatMulNBits, ONNX Runtime ContribOperators.md: w = (q − 8) · scale, low half of a byte first; default zero point 8. */
function dequantize(quantized: StoredTensor, scales: Float64Array): Float64Array[] {
  const [rows, blocks, blockBytes] = quantized.dims as [number, number, number];
  return Array.from({ length: rows }, (_, row) =>
    Float64Array.from({ length: blocks * blockBytes * 2 }, (__, i) => {
      const block = row * blocks + Math.floor(i / (blockBytes * 2));
      const within = i % (blockBytes * 2);
      const byte = quantized.bytes[block * blockBytes + Math.floor(within / 2)]!;
      return ((within % 2 === 0 ? byte & 15 : byte >> 4) - 8) * scales[block]!;
    }),
  );
}
