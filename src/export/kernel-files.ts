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
  const resultCell = (cell: (one: KernelResult) => Cell): Cell => (result ? cell(result) : null);
  return {
    session_id: session.id,
    engine: plan.engine.name,
    engine_version: plan.engine.version,
    device: plan.device,
    device_name: plan.device_facts?.name ?? null,
    kernel: resultCell(({ kernel }) => kernel),
    backend: resultCell(({ backend }) => backend),
    dtype: resultCell(({ dtype }) => dtype),
    case: resultCell((kernel) => kernel.case),
    params: resultCell(({ params }) => JSON.stringify(params)),
    outcome: resultCell(({ outcome }) => outcome),
    text: resultCell(({ text }) => text),
    runs: resultCell(({ runs }) => runs),
    mean_ns: value(mean),
    mean_ci95_low_ns: interval?.[0] ?? null,
    mean_ci95_high_ns: interval?.[1] ?? null,
    median_ns: resultCell(({ median_ns }) => median_ns),
    sd_ns: resultCell(({ sd_ns }) => sd_ns),
    min_ns: resultCell(({ min_ns }) => min_ns),
    max_ns: resultCell(({ max_ns }) => max_ns),
    p5_ns: resultCell(({ p5_ns }) => p5_ns),
    p95_ns: resultCell(({ p95_ns }) => p95_ns),
    bytes: resultCell(({ bytes }) => bytes),
    flops: resultCell(({ flops }) => flops),
    gigabytes_per_s: resultCell(({ bytes_per_s: rate }) => (rate === null ? null : rate / 1e9)),
    teraflops_per_s: resultCell(({ flops_per_s: rate }) => (rate === null ? null : rate / 1e12)),
    intensity_flop_per_byte: resultCell(({ intensity }) => intensity),
    roof_ns: value(result?.roof_ns),
    roof_level: resultCell(({ roof_level }) => roof_level),
    roof_gigabytes_per_s: resultCell(({ roof_bytes_per_s: { value: rate } }) =>
      rate === null ? null : rate / 1e9,
    ),
    working_set_bytes: resultCell(({ working_set_bytes }) => working_set_bytes),
    roof_share: value(result?.roof_share),
    bound: resultCell(({ bound }) => bound),
    peak_memory_bytes: value(result?.peak_memory_bytes),
    max_error: resultCell(({ max_error }) => max_error),
    clock_mhz: value(result?.clock_mhz),
    power_w: value(result?.power_w),
    throttled_by: resultCell(({ throttled_by }) => (throttled_by.length > 0 ? throttled_by.join(' ') : null)),
    method: resultCell(({ method }) => method),
    per_sample: resultCell(({ per_sample }) => per_sample),
    rotated_bytes: resultCell(({ rotated_bytes }) => rotated_bytes),
  };
}
