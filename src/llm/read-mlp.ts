import type { DenseMlp, MoeMlp, NoMlp } from './architecture.js';
import { configError, type ConfigFields } from './config-fields.js';
import type { Family, MoeFields } from './family.js';
import { readFlag } from './read-attention.js';
import { names } from './read-names.js';

/** The MLP of a layer: dense, with experts, or none. */
export function readMlp(
  fields: ConfigFields,
  family: Family,
  hiddenSize: number,
  layerCount: number,
  index: number,
): DenseMlp | MoeMlp | NoMlp {
  if (family.norms === 'single') return { kind: 'none' };
  const { moe } = family;
  if (!moe || !isSparse(fields, moe, layerCount, index)) {
    const isFourfold = family.name === 'GPT-2' || family.name === 'Falcon';
    const fallback = isFourfold ? 4 * hiddenSize : undefined;
    // Granite 4's dense models have their MLP in place of shared experts.
    const sizeField = moe?.layers === 'counted' ? 'shared_intermediate_size' : family.denseSize;
    return {
      kind: 'dense',
      gated: typeof family.gated === 'function' ? family.gated(fields) : family.gated,
      intermediateSize: fields.integerAt(sizeField === undefined ? names.intermediate : [sizeField], index, {
        fallback,
      }),
      bias: readFlag(fields, family.mlpBias),
    };
  }
  const expertCount = fields.integer(moe.experts);
  const intermediateSize = fields.integer([moe.expertSize]);
  const { shared } = moe;
  const sharedIntermediateSize =
    shared === null
      ? 0
      : 'sizeField' in shared
        ? fields.integer([shared.sizeField])
        : fields.integer([shared.countField], { min: 0, fallback: 0 }) * intermediateSize;
  return {
    kind: 'moe',
    expertCount,
    expertsPerToken: fields.integer(['num_experts_per_tok'], { max: expertCount }),
    intermediateSize,
    sharedIntermediateSize,
    sharedGate: shared !== null && 'gate' in shared && shared.gate,
    routerBias: readFlag(fields, moe.routerBias),
    bias: moe.bias ?? false,
  };
}

/** Whether a layer has experts, as transformers' modeling classes decide it. */
function isSparse(
  fields: ConfigFields,
  { layers: rule, experts }: MoeFields,
  layerCount: number,
  index: number,
): boolean {
  if (rule === 'every') return true;
  if (rule === 'counted') return fields.integer(experts, { min: 0, fallback: 0 }) > 0;
  if (rule === 'interleaved') {
    const listed = fields.raw('moe_layers');
    const step = fields.integer(['interleave_moe_layer_step'], { fallback: 1 });
    return Array.isArray(listed) ? listed.includes(index) : (index + 1) % step === 0;
  }
  if (rule === 'period') {
    const period = fields.integer(['expert_layer_period']);
    const offset = fields.integer(['expert_layer_offset'], { min: 0 });
    return fields.integer(experts) > 1 && index % period === offset % period;
  }
  if (rule === 'first-dense') {
    if (fields.integerOrNull('n_routed_experts') === null) return false;
    const firstDense = fields.integer(['first_k_dense_replace'], { min: 0, max: layerCount, fallback: 0 });
    return index >= firstDense && index % fields.integer(['moe_layer_freq'], { fallback: 1 }) === 0;
  }
  const dense = fields.raw('mlp_only_layers') ?? [];
  if (!Array.isArray(dense))
    throw configError('mlp_only_layers', dense, 'It must be a list of layer indices.');
  const step = fields.integer(['decoder_sparse_step'], { fallback: 1 });
  return !dense.includes(index) && (index + 1) % step === 0;
}
