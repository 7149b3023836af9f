import type { MemoryEstimate } from '../../llm/memory-estimate.js';
import type { VllmLogFacts } from '../../model/vllm-log.js';
import { type Part, type Place } from './part.js';
import { tensorBytes, recordedRows, type MemoryRows, type RecordedRow } from './rows.js';
import { dtypesOf } from './torch-device.js';
import { formatGb } from '../../vocabulary/format.js';

/**
 * Main memory of vLLM on the CPU. Its workers record their tensors and the resident part of the KV pool: vLLM reserves
 * the pool, and pages without writes take no memory. The front end and the engine core have neither.
 */
export function vllmHost(
  rows: MemoryRows,
  log: VllmLogFacts | null,
  { estimate, kvHeadsKnown }: { estimate: MemoryEstimate | null; kvHeadsKnown: boolean },
): Place {
  const parts = [
    weightsPart(rows, estimate),
    kvCachePart(rows, log, estimate, kvHeadsKnown),
    activationsPart(estimate),
    softwarePart(rows),
  ];
  return { gpu: null, parts: parts.flatMap((part) => part ?? []), peakStage: null };
}

const line = (estimate: MemoryEstimate | null, component: Part['component']) =>
  estimate?.lines.find((estimateLine) => estimateLine.component === component);

function weightsPart(rows: MemoryRows, estimate: MemoryEstimate | null): Part | null {
  const loadedBytes = (what: string) => tensorBytes(rows.recorded, { what, stage: 'load', device: null });
  const tensors = loadedBytes('weights');
  const packed = loadedBytes('packed') ?? 0;
  if (tensors !== null) {
    const packedText =
      packed > 0 ? ` + ${formatGb(packed)} packed for the CPU's kernels, by the layers' dimensions` : '';
    return {
      component: 'model_weights',
      bytes: tensors + packed,
      confidence: packed > 0 ? 'medium' : 'high',
      evidence: `parameter tensors of the workers, ${formatGb(tensors)} (${dtypesOf(rows, null, 'weights')})${packedText}`,
    };
  }
  const formula = line(estimate, 'model_weights');
  if (!formula) return null;
  const { bytes, confidence } = formula;
  const evidence = `formula: ${formula.formula}; vLLM does not log weights on a CPU`;
  return { component: 'model_weights', bytes, confidence, evidence, basis: 'formula' };
}

function kvCachePart(
  rows: MemoryRows,
  log: VllmLogFacts | null,
  estimate: MemoryEstimate | null,
  kvHeadsKnown: boolean,
): Part | null {
  const pool = tensorBytes(rows.recorded, { what: 'kv_cache', stage: 'end', device: null });
  const logged = (log?.ranks ?? []).flatMap(({ kv_cache }) => kv_cache ?? []);
  const lines = logged.map((fact) => `log: ${fact.line.trim()}`).join('; ');
  const residentBytes = sumBytes(lastRows(rows, 'kv_resident'));
  if (pool !== null && residentBytes !== null) {
    return {
      component: 'kv_cache',
      bytes: residentBytes,
      confidence: 'high',
      evidence: `resident pages, out of ${formatGb(pool)} of cache tensors (${dtypesOf(rows, null, 'kv_cache')})${lines === '' ? '' : `; ${lines}`}`,
    };
  }
  if (logged.length > 0) {
    const bytes = logged.reduce((sum, { value }) => sum + value, 0);
    return {
      component: 'kv_cache',
      bytes,
      confidence: 'medium',
      evidence: `${lines}: reserved; fewer pages may be resident`,
    };
  }
  const formula = line(estimate, 'kv_cache');
  if (!formula) return null;
  const evidence = `formula: ${formula.formula}${kvHeadsKnown ? '' : '; KV heads are not known, all heads counted'}`;
  return { component: 'kv_cache', bytes: formula.bytes, confidence: 'low', evidence, basis: 'formula' };
}

function activationsPart(estimate: MemoryEstimate | null): Part | null {
  const formula = line(estimate, 'activations');
  if (!formula) return null;
  const evidence = `formula: ${formula.formula}; the CPU allocator does not count them`;
  return { component: 'activations', bytes: formula.bytes, confidence: 'low', evidence, basis: 'formula' };
}

/** File-backed pages are code. Each process counts the pages that it maps, even if another process maps them too. */
function softwarePart(rows: MemoryRows): Part | null {
  const otherRows = lastRows(rows, 'rss_other');
  const files = sumBytes(lastRows(rows, 'rss_file'));
  if (otherRows.length === 0 || files === null) return null;
  const otherParts = otherRows
    .map(({ detail, bytes }) => `${detail ?? 'a helper'} ${formatGb(bytes)}`)
    .join(', ');
  return {
    component: 'framework_overhead',
    bytes: sumBytes(otherRows)! + files,
    confidence: 'medium',
    evidence: `resident in its other processes, without weights and cache: ${otherParts}; pages of files (code) in the workers ${formatGb(files)}`,
  };
}

/** The last record: at the end of the run, else after loading. */
function lastRows({ recorded }: MemoryRows, what: string): RecordedRow[] {
  const rowsAt = (stage: string) => recordedRows(recorded, { what, stage });
  return rowsAt('end').length > 0 ? rowsAt('end') : rowsAt('load');
}

function sumBytes(recorded: readonly RecordedRow[]): number | null {
  return recorded.length === 0 ? null : recorded.reduce((sum, { bytes }) => sum + bytes, 0);
}
