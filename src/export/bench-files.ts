import type { BenchPart } from '../model/bench.js';
import type { Document } from '../model/document.js';
import {
  baselineColumns,
  type BaselineMetrics,
  baselineMetricsVersion,
  type BaselineRow,
} from '../model/documents/baseline-metrics.js';
import type { BenchResult } from '../model/documents/bench.js';
import { baselineRow } from './bench-rows.js';
import { csvRows } from './csv.js';

interface BenchFile {
  name: string;
  text: string;
}

const csvNames: Record<BenchPart, string> = {
  latency: 'latency_results.csv',
  throughput: 'throughput_results.csv',
  sequence: 'sequence_length_results.csv',
};

/**
 * The files of a benchmark: baseline_metrics.json with every point, and a CSV for each part that was measured, with the same numbers
 * (scaling only for throughput). A missing number is null in the JSON, with its reason in `missing`, and an empty cell in the CSV.
 */
export function benchFiles(document: Document<BenchResult>): BenchFile[] {
  const { data } = document;
  const rows = data.variants.flatMap((variant) => variant.points.map((point) => baselineRow(variant, point)));
  const metrics: BaselineMetrics = {
    schema: `inferscope/baseline-metrics/${baselineMetricsVersion}`,
    tool_version: document.tool_version,
    session: data.session,
    engine: data.engine,
    protocol: data.protocol,
    points: rows,
    issues: document.issues,
  };
  const files = [{ name: 'baseline_metrics.json', text: `${JSON.stringify(metrics, null, 2)}\n` }];
  for (const part of data.parts) {
    const partRows = rows.filter(({ parts }) => parts.includes(part));
    if (partRows.length > 0) files.push({ name: csvNames[part], text: csv(data, part, partRows) });
  }
  return files;
}

type Cell = string | number | boolean | null;

function csv({ session, engine }: BenchResult, part: BenchPart, rows: readonly BaselineRow[]): string {
  const numbers = (Object.keys(baselineColumns) as (keyof typeof baselineColumns)[]).filter(
    (name) => part === 'throughput' || !name.startsWith('scaling_'),
  );
  const lines = rows.map((row): Record<string, Cell> => ({
    session_id: session.id,
    engine: engine.name,
    engine_version: engine.version,
    model: engine.model,
    dtype: engine.dtype,
    quantization: engine.quantization,
    weights: engine.weights,
    device: engine.device_name ?? engine.device,
    variant: row.variant,
    point: row.point,
    batch_size: row.batch_size,
    input_len: row.input_len,
    output_len: row.output_len,
    outcome: row.outcome,
    outcome_text: row.outcome_text,
    ...Object.fromEntries(numbers.map((name) => [name, row[name]])),
    prefill_bound: row.prefill_bound,
    decode_bound: row.decode_bound,
    warmup_stable: row.warmup_stable,
    interleaved: row.interleaved,
    flags: row.flags.length === 0 ? null : row.flags.join(' '),
  }));
  return csvRows(lines);
}
