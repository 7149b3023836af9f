import { stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { readArchitecture } from '../../llm/read-architecture.js';
import { countParameters } from '../../llm/parameters.js';
import type { DType } from '../../model/dtype.js';
import { InferscopeError } from '../../model/errors.js';
import { checkDecoderNames } from './decoder-signature.js';
import { readConfig } from './model-config.js';
import type { OnnxModel } from './onnx-model.js';
import { inspectOnnx, type OnnxSummary } from './onnx-inspect.js';

/** File names of optimum and transformers.js exports, by dtype; the first that exists is used. */
const fileNames: Partial<Record<DType, string[]>> = {
  float32: ['model.onnx', 'decoder_model_merged.onnx'],
  int8: ['model_quantized.onnx', 'model_int8.onnx', 'decoder_model_merged_quantized.onnx'],
  int4: ['model_q4.onnx', 'decoder_model_merged_q4.onnx'],
};

/**
 * The model file of an export folder (in it or in its `onnx/`); null if it has none.
 * @throws E_DTYPE if it has exports, but none of this dtype
 */
export async function findExport(folder: string, dtype: DType | undefined): Promise<string | null> {
  const paths: string[] = [];
  for (const kind of ['float32', 'int8', 'int4'] as const) {
    for (const name of fileNames[kind]!) {
      for (const path of [join(folder, name), join(folder, 'onnx', name)]) {
        if (
          !(await stat(path).then(
            (entry) => entry.isFile(),
            () => false,
          ))
        )
          continue;
        if (dtype === undefined || dtype === kind) return path;
        // A folder from onnxruntime-genai or `optimum --quantize` has int4 or int8 weights in model.onnx itself.
        if (kind === 'float32' && dtypeOf(await inspectOnnx(path)).dtype === dtype) return path;
        paths.push(path);
      }
    }
  }
  if (paths.length === 0) return null;
  throw new InferscopeError('E_DTYPE', {
    what: `${folder} has no ${dtype} export`,
    why: `It has ${paths.map((path) => path.slice(folder.length + 1)).join(', ')}, and an export keeps the dtype it was made with.`,
    fix: 'Leave --dtype out to take what is there, or pass only its config.json to get random weights of that dtype.',
  });
}

/**
 * A Hugging Face ONNX decoder export: `path` is the .onnx file; config.json and tokenizer.json are next to it or one
 * folder up.
 * @throws E_MODEL_FILE, E_MODEL_CONFIG, E_MODEL_NOT_FOUND (no config.json), E_MODEL_ARCHITECTURE, E_DTYPE
 */
export async function exportedModel(path: string, dtype: DType | undefined): Promise<OnnxModel> {
  const summary = await inspectOnnx(path);
  checkDecoderNames(summary.inputs, summary.outputs, path);
  const here = dirname(path);
  const folder =
    basename(here) === 'onnx' && !(await exists(join(here, 'config.json'))) ? dirname(here) : here;
  const config = await readConfig(join(folder, 'config.json'));
  const kind = dtypeOf(summary);
  if (dtype !== undefined && dtype !== kind.dtype) {
    throw new InferscopeError('E_DTYPE', {
      what: `${path} holds ${kind.dtype} weights, not ${dtype}`,
      why: 'An export keeps the dtype it was made with.',
      fix: `Leave --dtype out, or pass the ${dtype} file of the export.`,
    });
  }
  const tokenizerPath = join(folder, 'tokenizer.json');
  return {
    name: basename(folder),
    modelPath: path,
    config,
    ...kind,
    weights: 'trained',
    weight_bytes: [...summary.bytesByType.values()].reduce((sum, bytes) => sum + bytes, 0),
    num_parameters: parameterCount(config),
    tokenizerPath: (await exists(tokenizerPath)) ? tokenizerPath : null,
    logits: 'all',
    kvCache: 'grows',
    maxContext:
      typeof config['max_position_embeddings'] === 'number' ? config['max_position_embeddings'] : null,
  };
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** TensorProto.DataType of floating-point weights. */
const floats: [number, DType][] = [
  [1, 'float32'],
  [10, 'float16'],
  [16, 'bfloat16'],
];

function dtypeOf({ ops, bytesByType, matMulBits }: OnnxSummary): {
  dtype: DType;
  quantization: string | null;
} {
  if (matMulBits !== null) {
    return { dtype: matMulBits === 8 ? 'int8' : 'int4', quantization: `MatMulNBits ${matMulBits} bits` };
  }
  const dynamic = ['DynamicQuantizeMatMul', 'MatMulInteger', 'MatMulIntegerToFloat'].find((op) =>
    ops.has(op),
  );
  if (dynamic) return { dtype: 'int8', quantization: `dynamic int8 (${dynamic})` };
  const count = (op: string) => ops.get(op) ?? 0;
  // QDQ files have a DequantizeLinear for every weight; a single one is a quantized embedding.
  if (
    count('QLinearMatMul') > 0 ||
    count('DequantizeLinear') >= Math.max(2, count('MatMul') + count('Gemm'))
  ) {
    return { dtype: 'int8', quantization: 'static int8 (QDQ)' };
  }
  const [largest] = floats.toSorted(([a], [b]) => (bytesByType.get(b) ?? 0) - (bytesByType.get(a) ?? 0));
  return { dtype: largest![1], quantization: null };
}

/** Null for architectures unknown to llm/; such an export still runs. */
function parameterCount(config: Record<string, unknown>): number | null {
  try {
    return countParameters(readArchitecture(config)).total;
  } catch (error) {
    if (error instanceof InferscopeError && error.code === 'E_MODEL_ARCHITECTURE') return null;
    throw error;
  }
}
