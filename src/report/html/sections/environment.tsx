import { factOf } from '../../../vocabulary/facts.js';
import { formatBytes, formatCount, formatQuantity, noValue } from '../../format.js';
import { DataTable } from '../parts.js';
import type { Section } from '../section.js';

/** A fact of the manifest in words. */
export function factWords(fact: { id: string; value: string }): [string, string] {
  const { name, value } = factOf(fact);
  return [name, typeof value === 'string' ? value : formatQuantity(value.n, value.unit, value.digits)];
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
