import { floats, type HostArray, sizeOf } from './microbenchmark-arrays.js';

/**
 * The operations of microbenchmark-kernels.ts in float64, one element at a time: slow, plain, and independent of the
 * runtime. Arrays are row-major; each function gives the output's element at a flat index.
 */
type Element = (index: number) => number;

export const epsilon = 1e-5;

const elementAt = ({ data }: HostArray, index: number): number => Number(data[index]);
const columnsOf = ({ shape }: HostArray): number => shape.at(-1)!;

export function gemm(x: HostArray, w: HostArray, bias: HostArray | null): Element {
  const [k, n] = w.shape as [number, number];
  return (index) => {
    const [row, column] = [Math.floor(index / n), index % n];
    let sum = bias ? elementAt(bias, column) : 0;
    for (let i = 0; i < k; i++) sum += elementAt(x, row * k + i) * elementAt(w, i * n + column);
    return sum;
  };
}

export function conv2d(x: HostArray, w: HostArray, pad: number): Element {
  const [, channels, height, width] = x.shape as [number, number, number, number];
  const [out, , k] = w.shape as [number, number, number];
  const [rows, columns] = [height + 2 * pad - k + 1, width + 2 * pad - k + 1];
  return (index) => {
    const column = index % columns;
    const row = Math.floor(index / columns) % rows;
    const channel = Math.floor(index / (columns * rows)) % out;
    const image = Math.floor(index / (columns * rows * out));
    let sum = 0;
    for (let c = 0; c < channels; c++)
      for (let i = 0; i < k; i++)
        for (let j = 0; j < k; j++) {
          const [y, z] = [row + i - pad, column + j - pad];
          if (y < 0 || y >= height || z < 0 || z >= width) continue;
          const pixel = elementAt(x, ((image * channels + c) * height + y) * width + z);
          sum += pixel * elementAt(w, ((channel * channels + c) * k + i) * k + j);
        }
    return sum;
  };
}

/** erf to 1e-13: by its series below 3, by its continued fraction above (Abramowitz & Stegun 7.1.5, 7.1.14). */
export function erf(x: number): number {
  const a = Math.abs(x);
  if (a > 6) return Math.sign(x);
  if (a < 3) {
    let term = a;
    let sum = a;
    for (let n = 1; Math.abs(term) > 1e-17 * sum && n < 200; n++) {
      term *= (-a * a) / n;
      sum += term / (2 * n + 1);
    }
    return (Math.sign(x) * 2 * sum) / Math.sqrt(Math.PI);
  }
  let fraction = a;
  for (let n = 60; n > 0; n--) fraction = a + n / 2 / fraction;
  return Math.sign(x) * (1 - Math.exp(-a * a) / (fraction * Math.sqrt(Math.PI)));
}

export function layernormGelu(x: HostArray, scale: HostArray, bias: HostArray): Element {
  const n = columnsOf(x);
  return (index) => {
    const from = index - (index % n);
    let sum = 0;
    for (let i = 0; i < n; i++) sum += elementAt(x, from + i);
    const mean = sum / n;
    let squares = 0;
    for (let i = 0; i < n; i++) squares += (elementAt(x, from + i) - mean) ** 2;
    const normed =
      ((elementAt(x, index) - mean) / Math.sqrt(squares / n + epsilon)) * elementAt(scale, index % n) +
      elementAt(bias, index % n);
    return 0.5 * normed * (1 + erf(normed / Math.SQRT2));
  };
}

export function softmax(x: HostArray): Element {
  const n = columnsOf(x);
  return (index) => {
    const from = index - (index % n);
    let max = -Infinity;
    for (let i = 0; i < n; i++) max = Math.max(max, elementAt(x, from + i));
    let sum = 0;
    for (let i = 0; i < n; i++) sum += Math.exp(elementAt(x, from + i) - max);
    return Math.exp(elementAt(x, index) - max) / sum;
  };
}

export function rmsnorm(x: HostArray, residual: HostArray | null, scale: HostArray): Element {
  const n = columnsOf(x);
  const input = (index: number) => elementAt(x, index) + (residual ? elementAt(residual, index) : 0);
  return (index) => {
    const from = index - (index % n);
    let squares = 0;
    for (let i = 0; i < n; i++) squares += input(from + i) ** 2;
    return (input(index) / Math.sqrt(squares / n + epsilon)) * elementAt(scale, index % n);
  };
}

export function swiglu(gate: HostArray, up: HostArray): Element {
  return (index) => (elementAt(gate, index) / (1 + Math.exp(-elementAt(gate, index)))) * elementAt(up, index);
}

/** cos and sin of position · 10000^(−2i/d), [tokens, d/2] (RoFormer, arXiv 2104.09864). */
export function rotaryTables(name: string, tokens: number, dim: number): { cos: HostArray; sin: HostArray } {
  const [cos, sin] = [floats(`${name}cos`, [tokens, dim / 2]), floats(`${name}sin`, [tokens, dim / 2])];
  for (let i = 0; i < cos.data.length; i++) {
    const angle = Math.floor(i / (dim / 2)) * 10_000 ** ((-2 * (i % (dim / 2))) / dim);
    cos.data[i] = Math.cos(angle);
    sin.data[i] = Math.sin(angle);
  }
  return { cos, sin };
}

/** Rotates the two halves against each other, like Llama's rotate_half. */
export function rope(x: HostArray, cos: HostArray, sin: HostArray, dim: number): Element {
  const width = columnsOf(x);
  const half = dim / 2;
  return (index) => {
    const d = index % dim;
    const angle = Math.floor(index / width) * half + (d % half);
    const rotated = d < half ? -elementAt(x, index + half) : elementAt(x, index - half);
    return elementAt(x, index) * elementAt(cos, angle) + rotated * elementAt(sin, angle);
  };
}

export function gather(table: HostArray, rows: HostArray): Element {
  const width = columnsOf(table);
  return (index) => elementAt(table, elementAt(rows, Math.floor(index / width)) * width + (index % width));
}

export function argmax(x: HostArray): Element {
  const n = columnsOf(x);
  return (row) => {
    let best = 0;
    for (let i = 1; i < n; i++) if (elementAt(x, row * n + i) > elementAt(x, row * n + best)) best = i;
    return best;
  };
}

/**
 * Causal. `keys` and `values` [batch, kv heads, context, dim] are the cache, with room for the new tokens at its end; the new
 * tokens are read from `key` and `val`, because the runtime writes them into the cache.
 */
export function attention(
  arrays: Record<'query' | 'key' | 'val' | 'keys' | 'values', HostArray>,
  sizes: { heads: number; kv: number; dim: number; newTokens: number; context: number },
): Element {
  const { heads, kv, dim, newTokens, context } = sizes;
  const past = context - newTokens;
  const find = (
    cache: HostArray,
    added: HostArray,
    b: number,
    group: number,
    token: number,
    d: number,
  ): number =>
    token < past
      ? elementAt(cache, ((b * kv + group) * context + token) * dim + d)
      : elementAt(added, ((b * newTokens + token - past) * kv + group) * dim + d);
  return (index) => {
    const d = index % dim;
    const head = Math.floor(index / dim) % heads;
    const token = Math.floor(index / (dim * heads)) % newTokens;
    const b = Math.floor(index / (dim * heads * newTokens));
    const group = Math.floor(head / (heads / kv));
    const scores = Array.from({ length: past + token + 1 }, (_, key) => {
      let score = 0;
      for (let i = 0; i < dim; i++)
        score +=
          elementAt(arrays.query, ((b * newTokens + token) * heads + head) * dim + i) *
          find(arrays.keys, arrays.key, b, group, key, i);
      return score / Math.sqrt(dim);
    });
    const max = Math.max(...scores);
    let [sum, weighted] = [0, 0];
    for (const [key, score] of scores.entries()) {
      const weight = Math.exp(score - max);
      sum += weight;
      weighted += weight * find(arrays.values, arrays.val, b, group, key, d);
    }
    return weighted / sum;
  };
}

/**
 * ONNX's LSTM: gates in the order i, o, f, c; Y [seq, batch, hidden] of the last layer. All steps are computed once.
 */
export function lstm(
  x: HostArray,
  weights: readonly Record<'w' | 'r' | 'b', HostArray>[],
  hidden: number,
): Element {
  const [seq, batch] = x.shape as [number, number];
  let output: Float64Array | null = null;
  return (index) => (output ??= layers())[index]!;

  function layers(): Float64Array {
    let input = Float64Array.from({ length: sizeOf(x.shape) }, (_, i) => elementAt(x, i));
    for (const layerWeights of weights) input = layer(input, layerWeights);
    return input;
  }

  function layer(
    input: Float64Array,
    { w, r, b }: Record<'w' | 'r' | 'b', HostArray>,
  ): Float64Array<ArrayBuffer> {
    const width = columnsOf(w);
    const out = new Float64Array(seq * batch * hidden);
    const cell = new Float64Array(batch * hidden);
    for (let t = 0; t < seq; t++)
      for (let row = 0; row < batch; row++) {
        const gate = (gateIndex: number, unit: number): number => {
          const g = gateIndex * hidden + unit;
          let sum = elementAt(b, g) + elementAt(b, 4 * hidden + g);
          for (let i = 0; i < width; i++)
            sum += elementAt(w, g * width + i) * input[(t * batch + row) * width + i]!;
          if (t > 0)
            for (let i = 0; i < hidden; i++)
              sum += elementAt(r, g * hidden + i) * out[((t - 1) * batch + row) * hidden + i]!;
          return sum;
        };
        const logistic = (value: number) => 1 / (1 + Math.exp(-value));
        for (let unit = 0; unit < hidden; unit++) {
          const retained = logistic(gate(2, unit)) * cell[row * hidden + unit]!;
          const state = retained + logistic(gate(0, unit)) * Math.tanh(gate(3, unit));
          cell[row * hidden + unit] = state;
          out[(t * batch + row) * hidden + unit] = logistic(gate(1, unit)) * Math.tanh(state);
        }
      }
    return out;
  }
}
