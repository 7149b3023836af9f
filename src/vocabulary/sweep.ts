import type { SweepOutcome } from '../model/documents/sweep.js';
import { componentLabels } from './memory-components.js';
import { pointLabels } from './memory-points.js';

/** How runs of a sweep ended; the same on every surface. */
export const runOutcomeLabels: Readonly<Record<SweepOutcome, string>> = {
  pending: 'not started',
  running: 'running',
  measured: 'measured',
  partial: 'stopped early',
  failed: 'failed',
  timed_out: 'timed out',
  not_run: 'not run',
  interrupted: 'interrupted',
};

export const runOutcomeMeanings: typeof runOutcomeLabels = {
  pending: 'not started yet; --resume starts it',
  running: 'started, not finished',
  measured: 'finished with results',
  partial: 'failed; what was measured before is saved',
  failed: 'exited with an error',
  timed_out: 'stopped at its time limit',
  not_run: 'the machine did not allow it, e.g. a full disk; --resume tries again',
  interrupted: 'stopped by the user',
};

/** Columns of a memory profile have the labels of its points and components. */
const memoryLabels = Object.fromEntries(
  Object.entries({ ...pointLabels, ...componentLabels }).map(([name, label]) => [`${name}_gb`, label]),
);

const figureLabels: Readonly<Record<string, string>> = {
  ...memoryLabels,
  total_measured_gb: 'total',
  total_gb: 'total',
  largest_gpu_gb: 'largest GPU',
  largest_batch_size: 'max batch',
  largest_context_tokens: 'max context',
  mean_latency_ms: 'latency',
  tokens_per_second: 'tok/s',
  mean_ttft_ms: 'TTFT',
  mean_tpot_ms: 'TPOT',
  ttft_ms: 'TTFT',
  tpot_ms: 'TPOT',
  e2e_ms: 'end to end',
  output_tokens_per_s: 'output tok/s',
  decode_tokens_per_s: 'decode tok/s',
  memory_bytes: 'memory',
  peak_bytes: 'peak memory',
  peak_memory_bytes: 'peak memory',
  median_ns: 'median',
  decode_mbu: 'decode MBU',
  prefill_mfu: 'prefill MFU',
  roof_share: 'of roof',
  predicted_ms: 'predicted',
  launched_ms: 'launched',
  roofline_ms: 'roofline',
  wall_ms: 'wall',
  idle_share: 'idle',
};

/** Column head of a figure of a run; the name if it has no label. */
export const figureLabel = (name: string): string => figureLabels[name] ?? name.replaceAll('_', ' ');

/** Unit of a figure, by the suffix of its name. */
export function figureUnit(name: string): { unit: string; digits?: number } {
  if (name.endsWith('_gb')) return { unit: 'GB', digits: 4 };
  if (/_(ms|ns)$/.test(name)) return { unit: name.slice(-2) };
  if (name.endsWith('bytes_per_s')) return { unit: 'B/s' };
  if (name.endsWith('flops_per_s')) return { unit: 'FLOP/s' };
  if (name.endsWith('_bytes')) return { unit: 'B' };
  return { unit: /(_share|_mfu|_mbu)$/.test(name) ? 'ratio' : '' };
}

/** A figure of a run as shown: all memory in GB, as in memory profiles, plans and estimates. */
export function figureQuantity(name: string, n: number): { n: number; unit: string; digits?: number } {
  const unit = figureUnit(name);
  return unit.unit === 'B' ? { n: n / 1e9, ...figureUnit('_gb') } : { n, ...unit };
}

const parameterLabels: Readonly<Record<string, string>> = {
  model_id: 'model',
  input_length: 'input',
  output_length: 'output',
  input_len: 'input',
  output_len: 'output',
  batch_size: 'batch',
  tensor_parallel_size: 'TP',
  kv_cache_dtype: 'KV dtype',
  gpu_memory_utilization: 'GPU memory utilization',
};

/** Column head of a parameter of the plan; the name if it has no label. */
export const parameterLabel = (name: string): string => parameterLabels[name] ?? name.replaceAll('_', ' ');
