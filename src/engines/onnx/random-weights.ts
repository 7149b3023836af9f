import type { OnnxTensor } from './onnx-file.js';

/**
 * Seeded random weights. The generator is counter-based (a hash of index and key, no state), so any element can be
 * drawn on its own, layouts can differ between dtypes with the same values, and results are equal on every machine:
 * 32-bit integer arithmetic and one rounding to float32.
 */

/** Elements per chunk: 4 MiB of float32, so that a model of any size is written in constant memory. */
const chunkElements = 1 << 20;
/** Block of MatMulNBits: 32 weights share one float32 scale. */
export const int4Block = 32;

/** Constants: "lowbias32" (C. Wellons, nullprogram.com/blog/2018/07/31), a 32-bit mixer with an avalanche bias of 0.17. */
function mix(value: number): number {
  let x = value;
  x = Math.imul(x ^ (x >>> 16), 0x7feb352d);
  x = Math.imul(x ^ (x >>> 15), 0x846ca68b);
  return x ^ (x >>> 16);
}

/** Key of one tensor's stream: FNV-1a of its name, mixed with the model's seed. */
export function streamKey(seed: number, name: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  return mix(hash ^ mix(seed | 0));
}

/** The `index`-th draw of a stream, uniform over the signed 32-bit integers. */
export function draw(key: number, index: number): number {
  // 0x9e3779b9 = 2^32 / golden ratio spreads neighboring indices.
  return mix(Math.imul(index, 0x9e3779b9) + key);
}

/** A uniform distribution with standard deviation s spans ± s·√3; draws are ± 2^31. */
function scaleOf(std: number): number {
  return (std * Math.sqrt(3)) / 2 ** 31;
}

/** [rows, columns], element (r, c) = draw r·columns + c. */
export function randomMatrix(
  name: string,
  seed: number,
  rows: number,
  columns: number,
  std: number,
): OnnxTensor {
  const key = streamKey(seed, name);
  const scale = scaleOf(std);
  return {
    name,
    type: 'float32',
    shape: [rows, columns],
    *chunks() {
      const total = rows * columns;
      const buffer = new Float32Array(Math.min(chunkElements, total));
      for (let from = 0; from < total; from += buffer.length) {
        const count = Math.min(buffer.length, total - from);
        for (let i = 0; i < count; i++) buffer[i] = draw(key, from + i) * scale;
        yield new Uint8Array(buffer.buffer, 0, count * 4);
      }
    },
  };
}

/** A linear layer's weight for MatMul: [in, out], the transpose of `randomMatrix(name, …, out, in)`. */
export function randomLinear(name: string, seed: number, inputs: number, outputs: number): OnnxTensor {
  const key = streamKey(seed, name);
  const scale = scaleOf(inputs ** -0.5);
  return {
    name,
    type: 'float32',
    shape: [inputs, outputs],
    *chunks() {
      const rowsAtOnce = Math.min(inputs, Math.max(1, Math.floor(chunkElements / outputs)));
      const buffer = new Float32Array(rowsAtOnce * outputs);
      for (let from = 0; from < inputs; from += rowsAtOnce) {
        const rows = Math.min(rowsAtOnce, inputs - from);
        let length = 0;
        for (let input = from; input < from + rows; input++) {
          for (let output = 0; output < outputs; output++)
            buffer[length++] = draw(key, output * inputs + input) * scale;
        }
        yield new Uint8Array(buffer.buffer, 0, length * 4);
      }
    },
  };
}

/**
 * Vector around a center: norm scales (center 1) and biases (center 0), with enough spread for tests to notice a wrong
 * use.
 */
export function randomVector(
  name: string,
  seed: number,
  length: number,
  center: number,
  std: number,
): OnnxTensor {
  const key = streamKey(seed, name);
  const scale = scaleOf(std);
  return {
    name,
    type: 'float32',
    shape: [length],
    *chunks() {
      const values = Float32Array.from({ length }, (_, index) => center + draw(key, index) * scale);
      yield new Uint8Array(values.buffer);
    },
  };
}

/**
 * The same [out, in] weights as `randomMatrix`, quantized for MatMulNBits: `quantized` [out, in/32, 16] has two weights
 * per byte (the even one in the low half), w = (q − 8) · scale, and `scales` [out · in/32] one float32 per block.
 * Symmetric rounding: scale = max|w| / 7.5 would clip, so max|w| / 7 with q in 1..15.
 */
export function randomInt4(
  name: string,
  weightStream: string,
  seed: number,
  outputs: number,
  inputs: number,
  std: number,
): { quantized: OnnxTensor; scales: OnnxTensor } {
  const key = streamKey(seed, weightStream);
  const scale = scaleOf(std);
  const blocksPerRow = Math.ceil(inputs / int4Block);
  const blocks = outputs * blocksPerRow;
  const halfBlock = int4Block / 2;
  // Kept only while the two tensors are written, so that memory stays constant.
  let steps: Float32Array | null = null;
  const block = new Float32Array(int4Block);
  const packBlock = (index: number, target: Uint8Array, offset: number): number => {
    const row = Math.floor(index / blocksPerRow);
    const column = (index % blocksPerRow) * int4Block;
    let largest = 0;
    for (let i = 0; i < int4Block; i++) {
      // The last block of a row is padded with zeros if `in` is not a multiple of 32.
      const weight = column + i < inputs ? Math.fround(draw(key, row * inputs + column + i) * scale) : 0;
      block[i] = weight;
      if (weight > largest) largest = weight;
      else if (-weight > largest) largest = -weight;
    }
    const step = largest / 7;
    const inverse = step > 0 ? 1 / step : 0;
    for (let i = 0; i < halfBlock; i++) {
      // q + 8.5 is positive, so truncating rounds q to the nearest.
      const low = (block[2 * i]! * inverse + 8.5) | 0;
      const high = (block[2 * i + 1]! * inverse + 8.5) | 0;
      target[offset + i] = low | (high << 4);
    }
    return step;
  };
  return {
    quantized: {
      name: `${name}_Q4`,
      type: 'uint8',
      shape: [outputs, blocksPerRow, halfBlock],
      *chunks() {
        const scales = new Float32Array(blocks);
        const blocksAtOnce = Math.min(blocks, chunkElements / halfBlock);
        const buffer = new Uint8Array(blocksAtOnce * halfBlock);
        for (let from = 0; from < blocks; from += blocksAtOnce) {
          const count = Math.min(blocksAtOnce, blocks - from);
          for (let i = 0; i < count; i++) scales[from + i] = packBlock(from + i, buffer, i * halfBlock);
          yield buffer.subarray(0, count * halfBlock);
        }
        steps = scales;
      },
    },
    scales: {
      name: `${name}_scales`,
      type: 'float32',
      shape: [blocks],
      *chunks() {
        if (steps === null) throw new Error(`${name}: scales are known only after the quantized weights`);
        yield new Uint8Array(steps.buffer);
        steps = null;
      },
    },
  };
}
