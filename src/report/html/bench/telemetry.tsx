import { BenchChart, type BenchSection } from './bench-parts.js';
import { SamplesTable } from '../samples-table.js';

export const benchTelemetrySection: BenchSection = {
  id: 'telemetry',
  title: 'Telemetry',
  applies: ({ data }) => (data.telemetry?.length ?? 0) > 0,
  render: ({ data }) => {
    const series = data.telemetry ?? [];
    return (
      <BenchChart name="bench_telemetry" result={data} label="Host and GPUs over time">
        <SamplesTable series={series} />
      </BenchChart>
    );
  },
};
