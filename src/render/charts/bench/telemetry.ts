import type { BenchResult } from '../../../model/documents/bench.js';
import type { Chart } from '../chart.js';
import { telemetryHeight, telemetryOption } from '../telemetry.js';

/** Host and GPUs while the benchmark ran, a panel a metric. */
export const benchTelemetryChart: Chart<BenchResult> = {
  height: ({ telemetry }) => telemetryHeight(telemetry ?? []),
  build: (input) => telemetryOption(input, input.result.telemetry ?? []),
};
