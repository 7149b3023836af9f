import type { MemoryProfile } from '../../../model/documents/memory-profile.js';
import { formatCount, formatMs, formatNumber, noValue } from '../../format.js';
import { engineWords } from '../../memory-words.js';
import { DataTable, DefinitionList, MissingNotes } from '../parts.js';
import type { MemorySection } from './memory-parts.js';

const ms = (value: number | null): string => (value === null ? noValue : formatMs(value));

export const latencySection: MemorySection = {
  id: 'latency',
  title: 'Latency of the same run',
  render: ({ data: { profile } }) => {
    const { latency_stats: latency, metadata, missing } = profile;
    const { batch_size, input_len, output_len } = metadata.config;
    return (
      <>
        <DataTable
          caption={`Mean of ${formatCount(latency.runs)} repeats: batch ${batch_size}, ${input_len} → ${output_len} tokens`}
          columns={[{ head: '' }, { head: '', numeric: true }]}
          rows={[
            ['end to end', ms(latency.mean_latency_ms)],
            ['TTFT', ms(latency.mean_ttft_ms)],
            ['TPOT', ms(latency.mean_tpot_ms)],
            [
              'output tokens/s',
              latency.tokens_per_second === null ? noValue : formatNumber(latency.tokens_per_second),
            ],
          ]}
        />
        <MissingNotes
          reasons={[
            ...new Set(
              Object.entries(missing).flatMap(([path, why]) =>
                path.startsWith('latency_stats') ? [why] : [],
              ),
            ),
          ]}
        />
      </>
    );
  },
};

const text = (value: unknown): string =>
  value === null || value === undefined
    ? noValue
    : typeof value === 'number'
      ? Number.isInteger(value)
        ? formatCount(value)
        : formatNumber(value)
      : String(value);

function modelRows({ model_info: model }: MemoryProfile): [string, string, string][] {
  const { sources } = model;
  const count = (value: number | null) => (value === null ? noValue : formatCount(value));
  const rows: [string, string, string | undefined][] = [
    ['model', model.name, undefined],
    ['family', text(model.family), undefined],
    ['parameters', count(model.num_parameters), sources['num_parameters']],
    ['layers', count(model.num_layers), sources['num_layers']],
    ['query heads', count(model.num_heads), sources['num_heads']],
    ['KV heads', count(model.num_kv_heads), sources['num_kv_heads']],
    ['head dimension', count(model.head_dim), sources['head_dim']],
    ['hidden size', count(model.hidden_size), sources['hidden_size']],
    ['weights', text(model.dtypes.weights), sources['dtypes.weights']],
    ['activations', text(model.dtypes.activations), sources['dtypes.activations']],
    ['KV cache', text(model.dtypes.kv_cache), sources['dtypes.kv_cache']],
    ['quantisation', model.quantization ?? 'none', undefined],
    ['tensor parallel', count(model.tensor_parallel_size), undefined],
  ];
  return rows.map(([name, value, source]) => [name, value, source ?? '']);
}

function runRows(profile: MemoryProfile): [string, string][] {
  const { metadata } = profile;
  const { config } = metadata;
  return [
    ['engine', engineWords(profile)],
    [
      'where',
      metadata.container_name === null ? metadata.where : `${metadata.where} ${metadata.container_name}`,
    ],
    ...metadata.gpus.map(({ gpu, name }): [string, string] => [`gpu${gpu}`, name ?? 'GPU']),
    ...Object.entries(config)
      .filter(([, value]) => typeof value !== 'object' || value === null)
      .map(([name, value]): [string, string] => [name.replaceAll('_', ' '), text(value)]),
  ];
}

export const environmentSection: MemorySection = {
  id: 'environment',
  title: 'Model and run',
  render: ({ data: { profile } }) => (
    <div class="two">
      <DataTable
        caption="The model, and where its dimensions are from"
        class="whole"
        columns={[{ head: '' }, { head: '' }, { head: 'from', wraps: true }]}
        rows={modelRows(profile)}
      />
      <DataTable
        caption="What was asked for"
        class="whole"
        columns={[{ head: '' }, { head: '', wraps: true }]}
        rows={runRows(profile)}
      />
    </div>
  ),
};

/** Kept in step with docs/measurement.md. */
const definitions: [term: string, text: string][] = [
  ['GB', '10⁹ bytes, in this page and in every _gb field of the profile; the bytes stand beside it there.'],
  ['Baseline', 'In use before the engine’s process began: on a shared GPU that is what others hold.'],
  [
    'After warm-up',
    'When the repeats that warm up have ended: weights, cache, workspaces and graphs are there.',
  ],
  ['Peak', 'Most in use at any sample from the begin to the end of the run.'],
  [
    'Measured',
    'What the run itself took at its peak: its processes’ own use where the driver tells it, else peak − baseline.',
  ],
  [
    'Residual',
    'Measured − the components. Negative: they explain more than there was. It has no confidence.',
  ],
  [
    'Given out, reserved',
    'What the framework’s allocator handed to tensors, and what it holds from the driver for that. The difference is its cache and its fragments.',
  ],
  ['Calculator', 'What inferscope estimate says for the same model and shapes, without running anything.'],
  ['Max, mean, sd', 'Over the GPUs of the run; the standard deviation of the population, 0 for one GPU.'],
];

export const memoryDefinitionsSection: MemorySection = {
  id: 'definitions',
  title: 'Definitions',
  render: () => <DefinitionList terms={definitions} />,
};
