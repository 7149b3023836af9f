import type { Layer, RecurrentMixer } from './architecture.js';
import { configError, type ConfigFields } from './config-fields.js';
import type { Family, RecurrentFields } from './family.js';
import { readAttention } from './read-attention.js';

/** The mixer of each layer: attention, or in some families a recurrence in all or most layers. */
export function readMixers(
  fields: ConfigFields,
  family: Family,
  hiddenSize: number,
  layerCount: number,
): (index: number) => Layer['attention'] {
  const { recurrent } = family;
  if (!recurrent) return readAttention(fields, family, hiddenSize, layerCount);
  const isRecurrent = recurrentLayers(fields, recurrent.layers, layerCount);
  // A model without such layers may omit their sizes, and one with only such layers those of attention.
  const mixer = isRecurrent.includes(true) ? readRecurrent(fields, recurrent, hiddenSize) : null;
  const attentionOf = isRecurrent.includes(false)
    ? readAttention(fields, family, hiddenSize, layerCount)
    : null;
  return (index) => (isRecurrent[index] ? mixer! : attentionOf!(index));
}

function recurrentLayers(
  fields: ConfigFields,
  rule: RecurrentFields['layers'],
  layerCount: number,
): boolean[] {
  const flagLayers = (isRecurrent: (index: number) => boolean) =>
    Array.from({ length: layerCount }, (_, index) => isRecurrent(index));
  if (rule === 'every') return flagLayers(() => true);
  const listed = fields.raw('layer_types') ?? fields.raw('layers_block_type');
  if (Array.isArray(listed)) {
    if (listed.length !== layerCount) {
      throw configError(
        'layer_types',
        listed.length,
        `It must list one type for each of ${layerCount} layers.`,
      );
    }
    return listed.map((type: unknown) => {
      if (type === 'linear_attention' || type === 'mamba') return true;
      if (type === 'full_attention' || type === 'attention') return false;
      throw configError(
        'layer_types',
        type,
        'Known types: full_attention, attention, linear_attention, mamba.',
      );
    });
  }
  if (rule === 'interval') {
    const every = fields.integer(['full_attention_interval']);
    return flagLayers((index) => (index + 1) % every !== 0);
  }
  if (rule === 'period') {
    const period = fields.integer(['attn_layer_period']);
    const offset = fields.integer(['attn_layer_offset'], { min: 0 });
    return flagLayers((index) => index % period !== offset % period);
  }
  throw configError('layer_types', listed, 'It says which layers are attention and which are Mamba.');
}

function readRecurrent(fields: ConfigFields, rule: RecurrentFields, hiddenSize: number): RecurrentMixer {
  if (rule.form === 'gated DeltaNet') return readDeltaNet(fields);
  return rule.form === 'Mamba'
    ? readMamba(fields, hiddenSize, rule.innerNorms ?? false)
    : readMamba2(fields, hiddenSize);
}

/**
 * State of a value head: key dim × value dim. Each token decays it, reads its value for the key, writes the difference
 * and reads for the query: three products of key dim × value dim.
 */
function readDeltaNet(fields: ConfigFields): RecurrentMixer {
  const keyDim = fields.integer(['linear_key_head_dim']);
  const valueDim = fields.integer(['linear_value_head_dim']);
  const keyHeads = fields.integer(['linear_num_key_heads']);
  const valueHeads = fields.integer(['linear_num_value_heads']);
  const convKernel = fields.integer(['linear_conv_kernel_dim']);
  const innerSize = valueHeads * valueDim;
  const convChannels = 2 * keyHeads * keyDim + innerSize;
  const stateElements = valueHeads * keyDim * valueDim;
  return {
    kind: 'recurrent',
    form: 'gated DeltaNet',
    headCount: valueHeads,
    // Query, key, value; the output's gate; write strength and decay of each head.
    inRows: convChannels + innerSize + 2 * valueHeads,
    innerSize,
    projectionBias: false,
    convChannels,
    convKernel,
    convBias: false,
    inner: null,
    vectorElements: 2 * valueHeads + valueDim,
    stateElements,
    convStateElements: convChannels * (convKernel - 1),
    scanFlops: 6 * stateElements,
    window: null,
  };
}

/** A state of `stateSize` per channel: written with B·x, read with C. */
function readMamba(fields: ConfigFields, hiddenSize: number, hasInnerNorms: boolean): RecurrentMixer {
  const expand = fields.integer(['mamba_expand', 'expand'], { fallback: 2 });
  const innerSize = hasInnerNorms
    ? expand * hiddenSize
    : fields.integer(['intermediate_size'], { fallback: expand * hiddenSize });
  const stateSize = fields.integer(['mamba_d_state', 'state_size'], { fallback: 16 });
  const convKernel = fields.integer(['mamba_d_conv', 'conv_kernel'], { fallback: 4 });
  const rankName = hasInnerNorms ? 'mamba_dt_rank' : 'time_step_rank';
  const rank =
    fields.raw(rankName) === 'auto'
      ? Math.ceil(hiddenSize / 16)
      : fields.integer([rankName], { fallback: Math.ceil(hiddenSize / 16) });
  const stateElements = innerSize * stateSize;
  return {
    kind: 'recurrent',
    form: 'Mamba',
    headCount: innerSize,
    inRows: 2 * innerSize,
    innerSize,
    projectionBias: fields.boolean('mamba_proj_bias', fields.boolean('use_bias', false)),
    convChannels: innerSize,
    convKernel,
    convBias: fields.boolean('mamba_conv_bias', fields.boolean('use_conv_bias', true)),
    inner: { rank, stateSize },
    vectorElements: stateElements + innerSize + (hasInnerNorms ? rank + 2 * stateSize : 0),
    stateElements,
    convStateElements: innerSize * (convKernel - 1),
    scanFlops: 4 * stateElements,
    window: null,
  };
}

/** Like Mamba with one decay per head; the heads of a group share B and C. */
function readMamba2(fields: ConfigFields, hiddenSize: number): RecurrentMixer {
  const headCount = fields.integer(['mamba_n_heads', 'num_heads']);
  const headDim =
    fields.raw('mamba_d_head') === 'auto'
      ? (fields.integer(['mamba_expand'], { fallback: 2 }) * hiddenSize) / headCount
      : fields.integer(['mamba_d_head', 'head_dim']);
  const stateSize = fields.integer(['mamba_d_state', 'state_size']);
  const groups = fields.integer(['mamba_n_groups', 'n_groups'], { fallback: 1 });
  const convKernel = fields.integer(['mamba_d_conv', 'conv_kernel'], { fallback: 4 });
  fields.integerOrNull('mamba_expand');
  fields.integerOrNull('expand');
  const innerSize = headCount * headDim;
  const convChannels = innerSize + 2 * groups * stateSize;
  const stateElements = innerSize * stateSize;
  return {
    kind: 'recurrent',
    form: 'Mamba-2',
    headCount,
    inRows: innerSize + convChannels + headCount,
    innerSize,
    projectionBias: fields.boolean('mamba_proj_bias', fields.boolean('use_bias', false)),
    convChannels,
    convKernel,
    convBias: fields.boolean('mamba_conv_bias', fields.boolean('use_conv_bias', true)),
    inner: null,
    vectorElements: 3 * headCount + innerSize,
    stateElements,
    convStateElements: convChannels * (convKernel - 1),
    scanFlops: 4 * stateElements,
    window: null,
  };
}
