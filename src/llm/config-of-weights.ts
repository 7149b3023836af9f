import type { ModelTensor } from '../model/model-facts.js';

/**
 * A config for a decoder or encoder without one, from the shapes of its weights: one stack of layers, each with one
 * attention and one MLP of linear layers. Of several stacks (a vision tower and a decoder), the one in the module with
 * the vocabulary. Shapes do not show heads; work and cache depend only on widths.
 * @returns null if the shapes are ambiguous (experts, two stacks, other layers)
 */
export function configOfWeights(tensors: readonly ModelTensor[]): Record<string, unknown> | null {
  const matrices = tensors
    .filter(({ path, shape }) => shape.length === 2 && !path.includes('lora_'))
    .map(outputsFirst);
  const embeddings = matrices.filter(({ module }) => /embed/i.test(module));
  const linears = matrices.filter(({ module }) => !/embed/i.test(module));
  const [vocabulary] = embeddings.toSorted((a, b) => b.shape[0] * b.shape[1] - a.shape[0] * a.shape[1]);
  const inStacks = linears.filter(({ path }) => /(^|\.)\*(\.|$)/.test(path));
  const stacks = [...new Set(inStacks.map(({ path }) => prefixOf(path)))];
  const stack =
    stacks.length === 1
      ? stacks[0]
      : stacks.find((prefix) => vocabulary && moduleAround(prefix) === moduleAround(vocabulary.path));
  const inLayers = inStacks.filter(({ path }) => prefixOf(path) === stack);
  const layers = inLayers[0]?.count ?? 0;
  if (layers === 0 || inLayers.some(({ count }) => count !== layers)) return null;
  const attention = attentionOf(inLayers, vocabulary?.shape[1] ?? null);
  if (attention === null) return null;
  const { hidden, query, keys } = attention;
  const mlp = mlpOf(
    inLayers.filter((inLayer) => !attention.used.includes(inLayer)),
    hidden,
  );
  if (mlp === null) return null;
  const headDim = [128, 64, 32, 16].find((size) => query % size === 0 && keys % size === 0) ?? keys;
  const vocabSize = vocabulary?.shape[0] ?? 1;
  const untied = linears.some(
    ({ path, shape: [rows, columns] }) =>
      !path.includes('*') && rows === vocabSize && columns === hidden && vocabSize > 1,
  );
  return {
    // Widths cannot show the family, only whether it is gated with RMSNorm.
    model_type: mlp.gated ? 'llama' : 'phi',
    vocab_size: vocabSize,
    hidden_size: hidden,
    intermediate_size: mlp.size,
    num_hidden_layers: layers,
    num_attention_heads: query / headDim,
    num_key_value_heads: keys / headDim,
    head_dim: headDim,
    tie_word_embeddings: !untied,
  };
}

type Matrix = ModelTensor & { shape: [rows: number, columns: number] };

/** Outputs first: GPT-2's Conv1D has inputs first. */
function outputsFirst(tensor: ModelTensor): Matrix {
  const [first, second] = tensor.shape as [number, number];
  return { ...tensor, shape: tensor.module === 'Conv1D' ? [second, first] : [first, second] };
}

/** The path up to the layer's number. A second number is that of an expert. */
const prefixOf = (path: string): string =>
  path.split('*').length > 2 ? path : path.slice(0, path.indexOf('*'));

/** The module that contains a part: `model.text` for `model.text.layers.` and `model.text.embed.weight`. */
const moduleAround = (path: string): string =>
  path
    .replace(/(\.weight|\.)$/, '')
    .split('.')
    .slice(0, -1)
    .join('.');

interface Attention {
  hidden: number;
  query: number;
  keys: number;
  used: Matrix[];
}

const lastName = (path: string): string =>
  path
    .replace(/\.(weight|\*)$/, '')
    .split('.')
    .at(-1)!;
const fields = {
  query: /^(q|wq|query|to_q|q_proj|q_lin|q_proj_weight)$/i,
  key: /^(k|wk|key|to_k|k_proj|k_lin)$/i,
  value: /^(v|wv|value|to_v|v_proj|v_lin)$/i,
  fused: /^(w?qkv|qkv_proj|in_proj|in_proj_weight|c_attn|query_key_value)$/i,
};

/** Finds projections by name, and the output projection by shape. */
function attentionOf(linears: readonly Matrix[], width: number | null): Attention | null {
  const matching = (pattern: RegExp) => linears.filter(({ path }) => pattern.test(lastName(path)));
  const [fused, queries, keys, values] = [
    matching(fields.fused),
    matching(fields.query),
    matching(fields.key),
    matching(fields.value),
  ];
  const [first] = [...fused, ...queries];
  if (!first || fused.length + queries.length !== 1 || keys.length !== values.length) return null;
  const hidden = first.shape[1];
  if (width !== null && width !== hidden) return null;
  if (fused.length === 0 && keys.length !== 1) return null;
  const used = [...fused, ...queries, ...keys, ...values];
  const others = linears.filter((linear) => !used.includes(linear) && linear.shape[0] === hidden);
  const queryRows = queries[0]?.shape[0] ?? null;
  const moduleOf = (path: string) => path.split('.').slice(0, -1).join('.');
  const outputs = others.filter(({ shape }) => queryRows === null || shape[1] === queryRows);
  // The one in the same module, or the only one of this shape.
  const sameModule = outputs.filter(({ path }) =>
    moduleOf(path).startsWith(moduleOf(first.path).replace(/\.weight$/, '')),
  );
  const square = outputs.filter(({ shape }) => shape[1] <= hidden);
  const output = sameModule.length === 1 ? sameModule[0]! : square.length === 1 ? square[0]! : null;
  if (output === null) return null;
  const query = output.shape[1];
  const kv = fused[0] ? (fused[0].shape[0] - query) / 2 : keys[0]!.shape[0];
  if (!Number.isInteger(kv) || kv < 1 || kv > query) return null;
  return { hidden, query, keys: kv, used: [...used, output] };
}

/** One projection down, and one or two up to it; a gated MLP may store both in one. */
function mlpOf(linears: readonly Matrix[], hidden: number): { size: number; gated: boolean } | null {
  const down = linears.filter(({ shape }) => shape[0] === hidden);
  const up = linears.filter((linear) => !down.includes(linear) && linear.shape[1] === hidden);
  if (down.length !== 1 || down.length + up.length !== linears.length) return null;
  const size = down[0]!.shape[1];
  const rows = up.map(({ shape }) => shape[0]);
  if (rows.length === 1 && rows[0] === size) return { size, gated: false };
  if (rows.length === 1 && rows[0] === 2 * size) return { size, gated: true };
  return rows.length === 2 && rows.every((row) => row === size) ? { size, gated: true } : null;
}
