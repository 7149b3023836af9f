import type { Document } from '../model/document.js';
import type { KernelResult, KernelsResult } from '../model/documents/kernels.js';
import type { Figure } from '../model/figure.js';
import { csvRows } from './csv.js';

/** kernel_results.json is the document; kernel_results.csv has one row per case, with an empty cell for a missing number. */
export function kernelFiles(document: Document<KernelsResult>): { name: string; text: string }[] {
  const rows = document.data.cases.map((result) => rowOf(document.data, result));
  return [
    { name: 'kernel_results.csv', text: csvRows(rows, rowOf(document.data, null)) },
    { name: 'kernel_results.json', text: `${JSON.stringify(document, null, 2)}\n` },
  ];
}

type Cell = string | number | null;

function rowOf({ session, plan }: KernelsResult, result: KernelResult | null): Record<string, Cell> {
  const value = (figure: Figure | undefined): number | null => figure?.value ?? null;
  const mean = result?.mean_ns;
  const interval = mean && mean.value !== null ? mean.ci95 : undefined;
  const measured = (cell: (one: KernelResult) => Cell): Cell => (result ? cell(result) : null);
  return {
    session_id: session.id,
    engine: plan.engine.name,
    engine_version: plan.engine.version,
    device: plan.device,
    device_name: plan.device_facts?.name ?? null,
    kernel: measured(({ kernel }) => kernel),
    backend: measured(({ backend }) => backend),
    dtype: measured(({ dtype }) => dtype),
    case: measured((kernel) => kernel.case),
    params: measured(({ params }) => JSON.stringify(params)),
    outcome: measured(({ outcome }) => outcome),
    text: measured(({ text }) => text),
    runs: measured(({ runs }) => runs),
    mean_ns: value(mean),
    mean_ci95_low_ns: interval?.[0] ?? null,
    mean_ci95_high_ns: interval?.[1] ?? null,
    median_ns: measured(({ median_ns }) => median_ns),
    sd_ns: measured(({ sd_ns }) => sd_ns),
    min_ns: measured(({ min_ns }) => min_ns),
    max_ns: measured(({ max_ns }) => max_ns),
    p5_ns: measured(({ p5_ns }) => p5_ns),
    p95_ns: measured(({ p95_ns }) => p95_ns),
    bytes: measured(({ bytes }) => bytes),
    flops: measured(({ flops }) => flops),
    gigabytes_per_s: measured(({ bytes_per_s: rate }) => (rate === null ? null : rate / 1e9)),
    teraflops_per_s: measured(({ flops_per_s: rate }) => (rate === null ? null : rate / 1e12)),
    intensity_flop_per_byte: measured(({ intensity }) => intensity),
    roof_ns: value(result?.roof_ns),
    roof_level: measured(({ roof_level }) => roof_level),
    roof_gigabytes_per_s: measured(({ roof_bytes_per_s: { value: rate } }) =>
      rate === null ? null : rate / 1e9,
    ),
    working_set_bytes: measured(({ working_set_bytes }) => working_set_bytes),
    roof_share: value(result?.roof_share),
    bound: measured(({ bound }) => bound),
    peak_memory_bytes: value(result?.peak_memory_bytes),
    max_error: measured(({ max_error }) => max_error),
    clock_mhz: value(result?.clock_mhz),
    power_w: value(result?.power_w),
    throttled_by: measured(({ throttled_by }) => (throttled_by.length > 0 ? throttled_by.join(' ') : null)),
    method: measured(({ method }) => method),
    per_sample: measured(({ per_sample }) => per_sample),
    rotated_bytes: measured(({ rotated_bytes }) => rotated_bytes),
  };
}
