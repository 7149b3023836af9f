import { architectureIssues } from '../../llm/architecture-issues.js';
import type { Architecture } from '../../llm/architecture.js';
import { readArchitecture } from '../../llm/read-architecture.js';
import { countParameters } from '../../llm/parameters.js';
import type { Issue } from '../../model/document.js';
import type { MemoryProfile } from '../../model/documents/memory-profile.js';
import { InferscopeError } from '../../model/errors.js';
import type { Workload } from '../../model/manifest.js';
import type { GivenDimensions, MemoryPlan } from '../../model/memory-plan.js';

interface KnownModel {
  info: Pick<
    MemoryProfile['model_info'],
    | 'name'
    | 'num_parameters'
    | 'num_layers'
    | 'num_heads'
    | 'num_kv_heads'
    | 'head_dim'
    | 'hidden_size'
    | 'tensor_parallel_size'
    | 'sources'
    | 'family'
  >;
  /** With typed dimensions in place of the config's; null if it cannot be computed. */
  architecture: Architecture | null;
  /** Whether KV heads are known, so that the cache formula is exact. */
  kvHeadsKnown: boolean;
  issues: Issue[];
}

type Dimension = keyof GivenDimensions;

/** Names of each dimension in config.json across model families, and the flag that overrides them. */
const dimensionFields: Record<Exclude<Dimension, 'num_parameters'>, { names: string[]; flag: string }> = {
  num_layers: { names: ['num_hidden_layers', 'n_layer'], flag: '--num-layers' },
  num_heads: { names: ['num_attention_heads', 'n_head'], flag: '--num-heads' },
  num_kv_heads: { names: ['num_key_value_heads'], flag: '--num-kv-heads' },
  head_dim: { names: ['head_dim'], flag: '--head-dim' },
  hidden_size: { names: ['hidden_size', 'n_embd'], flag: '--hidden-size' },
};

/**
 * Dimensions of the model: as typed, else from config.json or a preset. Without a number of KV heads it assumes all
 * heads, with low confidence. A typed dimension that contradicts the config is a warning.
 */
export function modelOf(workload: Workload | null, plan: MemoryPlan): KnownModel {
  const config = textConfig(workload?.model?.config ?? {});
  const { given } = plan;
  const configSource = plan.config_source === 'preset' ? 'preset' : 'config';
  const sources: Record<string, string> = {};
  const issues: Issue[] = [];
  const dimension = (name: keyof typeof dimensionFields): number | null => {
    const { names, flag } = dimensionFields[name];
    const field = names.find((name) => typeof config[name] === 'number');
    const configured = field === undefined ? null : Number(config[field]);
    const option = given[name];
    if (option !== null && configured !== null && option !== configured)
      issues.push(disagreement(`${flag} ${option}`, `${field} ${configured}`));
    if (option !== null) sources[name] = 'flag';
    else if (configured !== null) sources[name] = configSource;
    return option ?? configured;
  };
  const layers = dimension('num_layers');
  const heads = dimension('num_heads');
  const hidden = dimension('hidden_size');
  let kvHeads = dimension('num_kv_heads');
  let headDim = dimension('head_dim');
  const architecture = architectureOf(config, given);
  if (architecture) issues.push(...architectureIssues(architecture));
  const firstAttention = architecture?.layers[0]?.attention;
  if (headDim === null && firstAttention?.kind === 'grouped') {
    headDim = firstAttention.headDim;
    sources['head_dim'] = `${configSource}: hidden_size / heads`;
  } else if (headDim === null && hidden !== null && heads !== null && hidden % heads === 0) {
    headDim = hidden / heads;
    sources['head_dim'] = 'hidden_size / heads';
  }
  const kvHeadsKnown = kvHeads !== null;
  if (kvHeads === null && heads !== null) {
    kvHeads = heads;
    sources['num_kv_heads'] = 'assumed: all heads';
  }
  return {
    info: {
      name: workload?.model?.name ?? plan.config.model,
      num_parameters: parametersOf(workload, architecture, plan, { sources, issues }),
      num_layers: layers,
      num_heads: heads,
      num_kv_heads: kvHeads,
      head_dim: headDim,
      hidden_size: hidden,
      tensor_parallel_size: workload?.tensor_parallel_size ?? plan.config.tensor_parallel_size,
      sources,
      family: architecture?.family ?? null,
    },
    architecture,
    kvHeadsKnown: kvHeadsKnown || firstAttention?.kind === 'latent',
    issues,
  };
}

function parametersOf(
  workload: Workload | null,
  architecture: Architecture | null,
  { given, config_source }: MemoryPlan,
  { sources, issues }: { sources: Record<string, string>; issues: Issue[] },
): number | null {
  const parameterCount =
    workload?.model?.num_parameters ?? (architecture && countParameters(architecture).total);
  const { num_parameters: option } = given;
  // A typed count like 7B is rounded, so only larger differences contradict it.
  if (option !== null && parameterCount !== null && Math.abs(option - parameterCount) > 0.1 * parameterCount)
    issues.push(disagreement(`--model-params ${option}`, `${parameterCount} parameters by its dimensions`));
  if (option !== null) sources['num_parameters'] = 'flag';
  else if (parameterCount !== null)
    sources['num_parameters'] = `counted from ${config_source === 'preset' ? 'preset' : 'config'}`;
  return option ?? parameterCount;
}

function disagreement(given: string, configured: string): Issue {
  const text = `${given} contradicts the model's config (${configured}): the typed value is used.`;
  return { code: 'dimension_disagrees', severity: 'warning', text };
}

function architectureOf(config: Record<string, unknown>, dimensions: GivenDimensions): Architecture | null {
  const overrides: Record<string, unknown> = {};
  for (const [name, { names }] of Object.entries(dimensionFields)) {
    const value = dimensions[name as Dimension];
    if (value === null) continue;
    overrides[names.find((field) => field in config) ?? names[0]!] = value;
  }
  try {
    return readArchitecture({ ...config, ...overrides });
  } catch (error) {
    if (error instanceof InferscopeError) return null;
    throw error;
  }
}

/** Multimodal configs have the decoder's fields in `text_config`. */
function textConfig(config: Record<string, unknown>): Record<string, unknown> {
  const inner = config['text_config'];
  return typeof inner === 'object' && inner !== null && !Array.isArray(inner)
    ? { ...config, ...inner }
    : config;
}
