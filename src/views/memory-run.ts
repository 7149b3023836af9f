import { settingLabel } from '../vocabulary/memory-components.js';
import type { MemoryProfile } from '../model/documents/memory-profile.js';
import { formatSetting } from '../vocabulary/format.js';
import type { Section, Text } from './block.js';

/** "vllm 0.32.0"; for a server that was already running also how it was queried. */
export function engineText({
  engine_metadata: engine,
  metadata,
}: Pick<MemoryProfile, 'engine_metadata' | 'metadata'>): string {
  const kind = engine.engine_type === 'openai' ? 'a server' : engine.engine_type;
  const name = [kind, engine.engine_version].filter(Boolean).join(' ');
  return metadata.where === 'url' ? `${name} behind an OpenAI-compatible URL` : name;
}

/** What was measured: the model with the source of each dimension, and the settings of the run. */
export const runSection = (profile: MemoryProfile): Section => ({
  id: 'environment',
  title: 'Model and run',
  level: 2,
  blocks: [
    {
      type: 'table',
      title: 'Model',
      columns: [
        { id: 'name', head: 'model' },
        { id: 'value', head: '', wraps: true },
        { id: 'source', head: 'from', wraps: true },
      ],
      rows: modelRows(profile).map((cells) => ({ cells })),
    },
    {
      type: 'table',
      title: 'Requested run',
      columns: [
        { id: 'name', head: 'run' },
        { id: 'value', head: '', wraps: true },
      ],
      rows: runRows(profile).map((cells) => ({ cells })),
    },
  ],
});

const valueText = (value: unknown): Text => {
  if (value === null || value === undefined) return { missing: 'not known' };
  if (typeof value !== 'number') return String(value);
  return Number.isInteger(value) ? { count: value } : formatSetting(value);
};

function modelRows({ model_info: model, missing }: MemoryProfile): Text[][] {
  const dimension = (label: string, key: keyof typeof model & string, text = valueText): Text[] => [
    label,
    model[key] === null ? { missing: missing[`model_info.${key}`] ?? 'not known' } : text(model[key]),
    model.sources[key] ?? '',
  ];
  return [
    ['name', model.name, ''],
    ['family', valueText(model.family), ''],
    ['weights', valueText(model.weights), ''],
    dimension('parameters', 'num_parameters', (n) => ({ n: Number(n), unit: 'parameters', bare: true })),
    dimension('layers', 'num_layers'),
    dimension('query heads', 'num_heads'),
    dimension('KV heads', 'num_kv_heads'),
    dimension('head dimension', 'head_dim'),
    dimension('hidden size', 'hidden_size'),
    ...(['weights', 'activations', 'kv_cache'] as const).map((name): Text[] => [
      `dtype of ${name === 'kv_cache' ? 'KV cache' : name}`,
      valueText(model.dtypes[name]),
      model.sources[`dtypes.${name}`] ?? '',
    ]),
    ['quantization', model.quantization ?? 'none', ''],
    ['tensor parallel', { count: model.tensor_parallel_size }, ''],
  ];
}

function runRows(profile: MemoryProfile): Text[][] {
  const { where, container_name: container, gpus, config } = profile.metadata;
  return [
    ['engine', engineText(profile)],
    ['where', container === null ? where : `${where} ${container}`],
    ...gpus.map(({ gpu, name }) => [`GPU ${gpu}`, name ?? 'GPU']),
    ...Object.entries(config)
      .filter(([, value]) => typeof value !== 'object' || value === null)
      .map(([name, value]) => [
        settingLabel(name),
        value === null ? { missing: 'not requested' } : valueText(value),
      ]),
  ];
}

/** Definitions of the figures on the page. */
const meanings: readonly [name: string, text: string][] = [
  ['GB', '10⁹ bytes, here and in every _gb field of the profile, which has the bytes, too.'],
  ['baseline', 'In use before the engine started; on a shared GPU by other processes.'],
  ['after warm-up', 'After the warm-up repeats: weights, KV cache, workspaces and graphs are allocated.'],
  ['peak', 'Maximum over all samples of the run.'],
  [
    'measured',
    'Memory of the run at its peak: peak − baseline, on a shared GPU what the driver lists for its own processes; on a CPU that of its processes.',
  ],
  [
    'residual',
    'Measured − components; negative if the components exceed the measured total. Its confidence is never high.',
  ],
  [
    'allocated, reserved',
    "Memory that the framework's allocator gave to tensors, and memory it reserved from the driver. The difference is cache and fragmentation.",
  ],
  ['estimate', 'Result of inferscope estimate for the same model and shapes, without running.'],
  ['max, mean, sd', 'Over the GPUs of the run; the standard deviation of the population, 0 for one GPU.'],
];

export const definitions: Section = {
  id: 'definitions',
  title: 'Definitions',
  level: 3,
  blocks: [{ type: 'facts', items: meanings.map(([name, text]) => ({ name, text })) }],
};
