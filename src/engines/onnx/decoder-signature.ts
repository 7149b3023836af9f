import type { InferenceSession } from 'onnxruntime-node';
import { InferscopeError } from '../../model/errors.js';
import type { CacheEntry } from './kv-cache.js';
import type { OnnxModel } from './onnx-model.js';

/** The inputs of a decoder, and how its KV cache passes from call to call. */
interface DecoderSignature {
  attentionMask: boolean;
  positionIds: boolean;
  /** Merged decoders (optimum) select one of two graphs by this flag. */
  useCacheBranch: boolean;
  cache: 'in-place' | 'grows';
  entries: CacheEntry[];
}

const pastName = /^past_key_values\.(\d+)\.(key|value)$/;
const knownInputs = new Set(['input_ids', 'attention_mask', 'position_ids', 'use_cache_branch']);

/**
 * Reads the signature from the model's inputs and outputs; open sizes come from config.json.
 * @throws E_MODEL_ARCHITECTURE if it is not a decoder with a KV cache; E_MODEL_CONFIG if config.json lacks such a size; E_DTYPE if
 * the cache or the logits are not float32
 */
export function decoderSignature(session: InferenceSession, model: OnnxModel): DecoderSignature {
  checkDecoderNames(session.inputNames, session.outputNames, model.modelPath);
  const entries = session.inputMetadata.flatMap((input): CacheEntry[] => {
    const match = pastName.exec(input.name);
    if (!match || !input.isTensor) return [];
    if (input.type !== 'float32') throw wrongCacheType(model, input.name, input.type);
    return [
      {
        past: input.name,
        present: `present.${match[1]}.${match[2]}`,
        numKvHeads: size(input.shape[1], model, ['num_key_value_heads', 'num_attention_heads']),
        headDim: size(input.shape[3], model, ['head_dim']),
      },
    ];
  });
  const logits = session.outputMetadata.find((output) => output.name === 'logits');
  if (logits?.isTensor && logits.type !== 'float32') throw wrongCacheType(model, 'logits', logits.type);
  return {
    attentionMask: session.inputNames.includes('attention_mask'),
    positionIds: session.inputNames.includes('position_ids'),
    useCacheBranch: session.inputNames.includes('use_cache_branch'),
    cache: model.kvCache,
    entries,
  };
}

/** @throws E_MODEL_ARCHITECTURE if these are not the inputs and outputs of a decoder with a KV cache */
export function checkDecoderNames(inputs: readonly string[], outputs: readonly string[], path: string): void {
  const unknownInputs = inputs.filter((name) => !knownInputs.has(name) && !pastName.test(name));
  const pasts = inputs.filter((name) => pastName.test(name));
  const why =
    !inputs.includes('input_ids') || !outputs.includes('logits')
      ? `It takes ${list(inputs)} and gives ${list(outputs)}; a decoder takes input_ids and gives logits (this may be an encoder).`
      : unknownInputs.length > 0
        ? `It takes inputs that a decoder-only model does not have: ${list(unknownInputs)}.`
        : pasts.length === 0
          ? 'It has no past_key_values inputs, so it cannot carry a KV cache from prefill to decode.'
          : pasts.some((name) => !outputs.includes(name.replace('past_key_values', 'present')))
            ? 'It takes past_key_values and does not give the present.* outputs that continue them.'
            : null;
  if (why === null) return;
  throw new InferscopeError('E_MODEL_ARCHITECTURE', {
    what: `${path} is not a decoder that the embedded engine can run`,
    why,
    fix: 'Export it with its cache: optimum-cli export onnx --task text-generation-with-past --model <id> <folder>',
  });
}

function list(names: readonly string[]): string {
  return names.length > 6 ? `${names.slice(0, 6).join(', ')} and ${names.length - 6} more` : names.join(', ');
}

function size(dimension: number | string | undefined, model: OnnxModel, fields: string[]): number {
  if (typeof dimension === 'number') return dimension;
  for (const field of fields) {
    const value = model.config[field];
    if (typeof value === 'number') return value;
  }
  const { hidden_size: hidden, num_attention_heads: heads } = model.config;
  if (fields.includes('head_dim') && typeof hidden === 'number' && typeof heads === 'number')
    return hidden / heads;
  throw new InferscopeError('E_MODEL_CONFIG', {
    what: `config.json of ${model.name} has no "${fields[0]}"`,
    why: 'The model file leaves the size of its KV cache open, so config.json must have it.',
    fix: 'Take the config.json that was exported with the model.',
  });
}

function wrongCacheType(model: OnnxModel, name: string, type: string): InferscopeError {
  return new InferscopeError('E_DTYPE', {
    what: `${model.modelPath} works in ${type}`,
    why: `Its "${name}" is ${type}; the embedded engine runs on CPUs, with operators in float32 (weights may be int8 or int4).`,
    fix: 'Use the float32, int8 or int4 file of the export (onnx/model.onnx, model_quantized.onnx, model_q4.onnx).',
  });
}
