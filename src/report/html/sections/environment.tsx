import { formatBytes, formatCount, formatQuantity, noValue } from '../../format.js';
import { DataTable } from '../parts.js';
import type { Section } from '../section.js';

/** How the ids of numbers end, the longer first. */
const units: readonly [ending: string, text: (value: number) => string][] = [
  ['_bytes_per_s', (value) => formatQuantity(value, 'B/s')],
  ['_bytes', formatBytes],
  ['_hz', (value) => formatQuantity(value / 1e6, 'MHz', 4)],
];
const written: Record<string, string> = { nvidia: 'NVIDIA', duckdb: 'DuckDB' };

/** A fact of the manifest in words: "l3_bytes", "33554432" is "L3", "32.0 MiB"; "cpu_avx2", "true" is "CPU AVX2", "yes". */
export function factWords({ id, value }: { id: string; value: string }): [string, string] {
  const unit = /^\d+$/.test(value) ? units.find(([ending]) => id.endsWith(ending)) : undefined;
  const words = (unit ? id.slice(0, -unit[0].length) : id).replaceAll('_', ' ');
  const name = words.replaceAll(
    /\b(?:cpu|gpu|os|sm|numa|l\d\w?|avx\w*|vnni|amx|neon|bf16|cuda|nvidia|duckdb)\b/gi,
    (word) => written[word.toLowerCase()] ?? word.toUpperCase(),
  );
  if (unit) return [name, unit[1](Number(value))];
  if (value === 'true' || value === 'false') return [name, value === 'true' ? 'yes' : 'no'];
  return [name, value];
}

export const environmentSection: Section = {
  id: 'environment',
  title: 'Environment',
  render: ({ data: { workload, environment } }) => {
    const { model, engine } = workload;
    const count = (value: number | null): string => (value === null ? noValue : formatCount(value));
    const workloadRows: [string, string][] = [
      ['model', model?.name ?? noValue],
      ['parameters', count(model?.num_parameters ?? null)],
      [
        'weights',
        model
          ? `${model.weights}, ${model.dtype}${model.quantization ? `, ${model.quantization}` : ''}`
          : noValue,
      ],
      ['weights on disk', model?.weight_bytes ? formatBytes(model.weight_bytes) : noValue],
      ['engine', `${engine.name} ${engine.version ?? ''}`],
      ['device', workload.device],
      ['threads', count(workload.threads)],
      ['batch size', count(workload.batch_size)],
      ['input tokens', count(workload.input_len)],
      ['output tokens', count(workload.output_len)],
      ...Object.entries(engine.options).map(([name, value]): [string, string] => [
        name,
        String(value ?? noValue),
      ]),
    ];
    return (
      <div class="two">
        <DataTable
          caption="Workload"
          class="whole"
          columns={[{ head: '' }, { head: '', wraps: true }]}
          rows={workloadRows.map(([name, value]) => [name, value])}
        />
        <DataTable
          caption="Machine and software"
          class="whole"
          columns={[{ head: '' }, { head: '', wraps: true }]}
          rows={environment.map(factWords)}
        />
      </div>
    );
  },
};
