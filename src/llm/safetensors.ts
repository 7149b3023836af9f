import { InferscopeError } from '../model/errors.js';
import { parseJson } from '../model/parse-json.js';
import { plural } from '../vocabulary/format.js';

/** A tensor of a safetensors header: dtype as written in it (BF16, F8_E4M3 …), bytes from its offsets. */
export interface FileTensor {
  name: string;
  dtype: string;
  shape: number[];
  bytes: number;
}

/** Longest header that the format's own library accepts (safetensors, MAX_HEADER_SIZE). */
const longestHeader = 100_000_000;

/**
 * Tensors of a safetensors header: u64 little-endian length, then JSON of that length `{name: {dtype, shape,
 * data_offsets}}` (https://github.com/huggingface/safetensors#format).
 * @param file names the file in errors
 * @throws E_MODEL_FILE for an invalid header
 */
export function parseSafetensorsHeader(header: Uint8Array, file: string): FileTensor[] {
  const fail = (why: string): never => {
    throw new InferscopeError('E_MODEL_FILE', {
      what: `${file} is not a safetensors file`,
      why,
      fix: 'Download it again, or give the config.json next to it.',
    });
  };
  let json: unknown;
  try {
    json = parseJson(new TextDecoder().decode(header));
  } catch {
    return fail('Its header is not JSON.');
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    return fail('Its header is not an object.');
  return Object.entries(json).flatMap(([name, tensor]: [string, unknown]): FileTensor[] => {
    if (name === '__metadata__') return [];
    const { dtype, shape, data_offsets } = (tensor ?? {}) as Record<string, unknown>;
    const [from, to] = Array.isArray(data_offsets) ? (data_offsets as unknown[]) : [];
    if (
      typeof dtype !== 'string' ||
      !isShape(shape) ||
      typeof from !== 'number' ||
      typeof to !== 'number' ||
      to < from
    ) {
      return fail(`Its tensor ${JSON.stringify(name)} has no dtype, shape and offsets.`);
    }
    return [{ name, dtype, shape, bytes: to - from }];
  });
}

function isShape(shape: unknown): shape is number[] {
  return Array.isArray(shape) && shape.every((size) => Number.isSafeInteger(size) && (size as number) >= 0);
}

/**
 * Length of the header from a file's first 8 bytes.
 * @throws E_MODEL_FILE if it is invalid
 */
export function safetensorsHeaderLength(start: Uint8Array, file: string): number {
  const length =
    start.length < 8 ? 0 : Number(new DataView(start.buffer, start.byteOffset).getBigUint64(0, true));
  if (length >= 2 && length <= longestHeader) return length;
  throw new InferscopeError('E_MODEL_FILE', {
    what: `${file} is not a safetensors file`,
    why: `Its first 8 bytes would be a header of ${plural(length, 'byte')}. A file of git LFS that was not fetched looks like this.`,
    fix: 'Download it again, or give the config.json next to it.',
  });
}

/** Weights in a model's files. */
export interface FileWeights {
  /** Bytes of the weights that an engine loads. */
  bytes: number;
  /** Weights only, without scales, zero points or packed integers. Null for quantized files. */
  parameters: number | null;
  tensors: number;
  /** Bytes by dtype of the file. */
  byDtype: Record<string, number>;
  /** Other tensors in the files, and why they do not count. */
  leftOut: { what: string; bytes: number }[];
}

const floats = new Set(['F64', 'F32', 'F16', 'BF16']);

/**
 * Sums the tensors of all files of a model. Excluded, because engines do not load them: buffers (GPT-2's causal masks,
 * rotary frequencies), a tied lm_head stored a second time, and multi-token-prediction layers (from `layers` on).
 */
export function weightsOfFiles(
  tensors: readonly FileTensor[],
  { layers, tied }: { layers: number; tied: boolean },
): FileWeights {
  const embedding = tensors.find(({ name }) => /(^|\.)(embed_tokens|wte)\.weight$/.test(name));
  const excluded = new Map<string, number>();
  const byDtype: Record<string, number> = {};
  let bytes = 0;
  let parameters = 0;
  let tensorCount = 0;
  let quantized = false;
  for (const tensor of tensors) {
    const why = whyLeftOut(tensor, embedding, layers, tied);
    if (why !== null) {
      excluded.set(why, (excluded.get(why) ?? 0) + tensor.bytes);
      continue;
    }
    bytes += tensor.bytes;
    tensorCount += 1;
    byDtype[tensor.dtype] = (byDtype[tensor.dtype] ?? 0) + tensor.bytes;
    parameters += tensor.shape.reduce((n, size) => n * size, 1);
    quantized ||= !floats.has(tensor.dtype);
  }
  return {
    bytes,
    parameters: quantized ? null : parameters,
    tensors: tensorCount,
    byDtype,
    leftOut: [...excluded].map(([what, bytes]) => ({ what, bytes })),
  };
}

function whyLeftOut(
  { name, shape }: FileTensor,
  embedding: FileTensor | undefined,
  layers: number,
  tied: boolean,
): string | null {
  if (/(^|\.)attn\.(masked_)?bias$|rotary_emb\.inv_freq$/.test(name)) return 'buffers';
  const sameShape = embedding !== undefined && String(shape) === String(embedding.shape);
  if (tied && /(^|\.)lm_head\.weight$/.test(name) && sameShape) return 'the tied lm_head, stored twice';
  const layer = /(?:^|\.)(?:layers|h)\.(\d+)\./.exec(name);
  return layer && Number(layer[1]) >= layers ? 'multi-token-prediction layers' : null;
}
