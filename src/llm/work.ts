import { bytesPerElement } from '../model/dtype.js';
import { InferscopeError } from '../model/errors.js';
import type { Architecture, Encoder, ExtraTensor, Layer } from './architecture.js';
import { linearOp, normOp, operation, type NecessaryOp, type Stage } from './necessary-op.js';
import { checkShape, type SourceShape, type StageShape } from './shape.js';
import { tensorBytes, type Storage } from './storage.js';
import { layerTensors, lmHead, modelTensors, parametersOf, type Tensor } from './tensors.js';
import { attentionOps, crossOps } from './work-attention.js';
import { mlpOps } from './work-mlp.js';

/**
 * The necessary operations of the model in one stage, in execution order: weights read once, KV cache read once,
 * activations read and written once, fused where a fused kernel is standard (QKV, norm + residual, SwiGLU, rotary,
 * attention). After the last layer only the sampled token of each sequence is computed. Every FLOP and byte count of a
 * stage is the sum over these. Choosing the next token is outside the model (`samplingOp`).
 * docs/concepts/llm-arithmetic.md has every formula with its source.
 * @throws E_LENGTHS for an impossible shape
 */
export function stageWork(a: Architecture, shape: StageShape, storage: Storage): NecessaryOp[] {
  const stage = stageOf(a, shape, storage);
  if (!a.encoder) return decoderOps(stage);
  const { tokens, step } = sourceOf(shape);
  const encode = { ...shape, phase: 'prefill', newTokens: tokens, contextTokens: 0 } as const;
  return [
    ...(step.startsWith('encode') ? encoderOps(stageOf(a, encode, storage), a.encoder) : []),
    ...(step === 'encode' ? [] : decoderOps(stage)),
  ];
}

function sourceOf({ source }: StageShape): SourceShape {
  if (source) return source;
  throw new InferscopeError('E_LENGTHS', {
    what: 'the length of the source is not known',
    why: "An encoder-decoder model's decoder reads keys and values of each token of its source.",
    fix: 'Run the model with inferscope run, which records it.',
  });
}

function decoderOps(stage: Stage): NecessaryOp[] {
  const layers = stage.a.layers.filter(({ isEncoder }) => !isEncoder);
  return [...inputOps(stage), ...layers.flatMap((layer) => layerOps(stage, layer)), ...outputOps(stage)];
}

function encoderOps(stage: Stage, { positionRows, convolutions }: Encoder): NecessaryOp[] {
  const { a, tokens, shape } = stage;
  const tensor = tensorsOf(a, null);
  const D = a.hiddenSize;
  const bytes = bytesPerElement[stage.storage.activations];
  // Windows overlap, so each convolution reads its input once. The second one halves the number of frames.
  const convolution = (name: string, rows: number, inElements: number): NecessaryOp => {
    const op = linearOp(stage, name, [tensor(name)], rows);
    return { ...op, bytes: { ...op.bytes, activations_in: inElements * bytes } };
  };
  const positions = positionRows > 0 ? tensor('encoder_embed_positions') : null;
  const ops = convolutions
    ? [
        convolution('conv1', 2 * tokens, 2 * tokens * convolutions.melBins),
        convolution('conv2', tokens, 2 * tokens * D),
        positionOp(stage, positions!),
      ]
    : [embeddingOp(stage, positions)];
  if (a.embeddingNorm) ops.push(normOp(stage, tensor('encoder_embedding_norm'), tokens, 1, 1));
  const layers = a.layers.filter(({ isEncoder }) => isEncoder);
  ops.push(...layers.flatMap((layer) => layerOps(stage, layer)));
  if (a.finalNorm)
    ops.push(normOp(stage, tensor('encoder_final_norm'), shape.batchSize * shape.newTokens, 2, 1));
  return ops;
}

/** Adds positions, shared by all sequences, to the output of convolutions. */
function positionOp(stage: Stage, positions: Tensor): NecessaryOp {
  const { a, tokens, shape, storage } = stage;
  const elements = tokens * a.hiddenSize;
  return operation(stage, 'encoder_positions', 'elementwise', null, elements, elements, {
    weights: shape.newTokens * rowBytes(positions, storage),
    parameters: parametersOf(positions),
  });
}

/**
 * Choosing the next token of each sequence: reads the logits, writes a token id (8 bytes).
 * @throws E_LENGTHS for an impossible shape
 */
export function samplingOp(a: Architecture, shape: StageShape, storage: Storage): NecessaryOp {
  const sampled = a.encoder && shape.source?.step === 'encode' ? 0 : shape.batchSize;
  const op = operation(stageOf(a, shape, storage), 'sample', 'sampling', null, sampled * a.vocabSize, 0);
  op.bytes.activations_out = sampled * 8;
  return op;
}

function stageOf(a: Architecture, shape: StageShape, storage: Storage): Stage {
  checkShape(shape);
  return { a, shape, storage, tokens: shape.batchSize * shape.newTokens };
}

type Lookup = (name: string) => Tensor;

function lookup(tensors: Tensor[]): Lookup {
  const byName = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  return (name) => {
    const tensor = byName.get(name);
    if (!tensor) throw new Error(`no tensor ${name} in ${[...byName.keys()].join(', ')}`);
    return tensor;
  };
}

/** Weights by model, because a search for a batch size computes the stage dozens of times. */
const tensorsByModel = new WeakMap<Architecture, Map<Layer | null, Lookup>>();

/** Weights of one layer, or those outside the layers. */
function tensorsOf(a: Architecture, layer: Layer | null): Lookup {
  const lookups = tensorsByModel.get(a) ?? new Map<Layer | null, Lookup>();
  tensorsByModel.set(a, lookups);
  const layerLookup = lookups.get(layer) ?? lookup(layer ? layerTensors(a, layer) : modelTensors(a));
  lookups.set(layer, layerLookup);
  return layerLookup;
}

function inputOps(stage: Stage): NecessaryOp[] {
  const { a, tokens } = stage;
  const tensor = tensorsOf(a, null);
  const isProjected = a.embeddingDim !== a.hiddenSize;
  const ops = [embeddingOp(stage, a.positionRows > 0 ? tensor('embed_positions') : null)];
  if (isProjected) ops.push(linearOp(stage, 'project_in', [tensor('project_in')], tokens));
  if (a.embeddingNorm) ops.push(normOp(stage, tensor('embedding_norm'), tokens, 1, 1));
  return [...ops, ...extraOps(stage, a.extra, tensor, null)];
}

const rowBytes = (weight: Tensor, { weights }: Storage): number =>
  tensorBytes({ ...weight, rows: 1 }, weights);

/** Only looked-up rows are read: one per token, and one per position (shared by all sequences). */
function embeddingOp(stage: Stage, positions: Tensor | null): NecessaryOp {
  const { a, tokens, shape, storage } = stage;
  const table = tensorsOf(a, null)('embed_tokens');
  const ofPositions = positions ? shape.newTokens * rowBytes(positions, storage) : 0;
  return operation(stage, 'embedding', 'embedding', null, 0, tokens * a.embeddingDim, {
    weights: tokens * rowBytes(table, storage) + ofPositions,
    parameters: parametersOf(table) + (positions ? parametersOf(positions) : 0),
  });
}

/** Weights of a single family: each token goes through the matrices and looks up its row of a table. */
function extraOps(
  stage: Stage,
  extra: readonly ExtraTensor[],
  tensor: (name: string) => Tensor,
  layer: number | null,
): NecessaryOp[] {
  const { tokens, storage } = stage;
  return extra.map(({ name, kind, rows, columns }) => {
    if (kind === 'linear') return linearOp(stage, name, [tensor(name)], tokens);
    const isTable = kind === 'embedding';
    const width = isTable ? columns : rows;
    const weight = tensor(name);
    return operation(
      stage,
      name,
      isTable ? 'embedding' : 'norm',
      layer,
      isTable ? 0 : tokens * width,
      tokens * width,
      {
        weights: isTable
          ? tokens * tensorBytes({ ...weight, rows: 1 }, storage.weights)
          : tensorBytes(weight, storage.weights),
        parameters: parametersOf(weight),
      },
    );
  });
}

function outputOps(stage: Stage): NecessaryOp[] {
  const { a, shape } = stage;
  const sampled = shape.batchSize;
  const tensor = tensorsOf(a, null);
  const ops: NecessaryOp[] = [];
  // The last layer's additions are in this norm: its output, the residual, and in parallel layers both branches.
  if (a.finalNorm) {
    ops.push(normOp(stage, tensor('final_norm'), sampled, isParallel(a) ? 3 : 2, 1));
  }
  if (a.embeddingDim !== a.hiddenSize) {
    ops.push(linearOp(stage, 'project_out', [tensor('project_out')], sampled));
  }
  ops.push(lmHeadOp(stage, sampled));
  return ops;
}

function isParallel({ norms }: Architecture): boolean {
  return norms === 'parallel' || norms === 'parallel-two';
}

function lmHeadOp(stage: Stage, sampled: number): NecessaryOp {
  const { a, storage } = stage;
  const head = lmHead(a);
  if (!a.tiedEmbeddings) return linearOp(stage, 'lm_head', [head], sampled);
  // A tied lm_head reads the embedding as stored; its parameters count there.
  const weights = { ...storage.weights, lmHead: storage.weights.embedding };
  const op = linearOp({ ...stage, storage: { ...storage, weights } }, 'lm_head', [head], sampled);
  return { ...op, parameters: head.bias };
}

function layerOps(stage: Stage, layer: Layer): NecessaryOp[] {
  const tensor = tensorsOf(stage.a, layer);
  return [...blockOps(stage, layer), ...extraOps(stage, layer.extra, tensor, layer.index)];
}

function blockOps(stage: Stage, layer: Layer): NecessaryOp[] {
  const { a, tokens } = stage;
  const tensor = tensorsOf(a, layer);
  const attention = attentionOps(stage, layer, tensor);
  const cross = layer.cross ? crossOps(stage, layer.index, layer.cross, tensor) : [];
  const mlp = mlpOps(stage, layer, tensor);
  const norm = (name: string, reads: number, writes: number): NecessaryOp =>
    normOp(stage, tensor(name), tokens, reads, writes);
  // Vectors per token: reads the block's output and the residual, writes the normed and new residual. The first norm of
  // a model has no addition before it, and its input is the residual.
  const isFirst = a.layers[layer.index - 1]?.isEncoder !== layer.isEncoder || layer.index === 0;
  const entry = (reads: number): NecessaryOp =>
    isFirst ? norm('input_norm', 1, 1) : norm('input_norm', reads, 2);
  switch (a.norms) {
    case 'pre':
      return [
        entry(2),
        ...attention,
        ...(layer.cross ? [norm('cross_attention_norm', 2, 2), ...cross] : []),
        norm('post_attention_norm', 2, 2),
        ...mlp,
      ];
    case 'single':
      return [entry(2), ...attention];
    case 'parallel-two':
      // Reads the layer's input, which the first norm wrote as the new residual.
      return [entry(3), ...attention, norm('post_attention_norm', 1, 1), ...mlp];
    case 'parallel':
      return [entry(3), ...attention, ...mlp];
    case 'sandwich':
      return [
        entry(2),
        ...attention,
        norm('post_attention_norm', 1, 1),
        norm('pre_feedforward_norm', 2, 2),
        ...mlp,
        norm('post_feedforward_norm', 1, 1),
      ];
    case 'post':
      return [
        ...attention,
        norm('attention_norm', 2, 1),
        ...(layer.cross ? [...cross, norm('cross_attention_norm', 2, 1)] : []),
        ...mlp,
        norm('mlp_norm', 2, 1),
      ];
  }
}
