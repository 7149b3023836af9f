import type { MemoryEstimate } from '../../llm/memory-estimate.js';
import { type Part, type Place } from './part.js';
import { dtypesOf } from './torch-device.js';
import { highest, maxRecorded, sampleAt, tensorBytes, recordedRows, type MemoryRows } from './rows.js';
import { formatGb } from '../../vocabulary/format.js';

/** Main memory of an engine on the CPU: tensors that the engine counts, else computed sizes. */
export function hostPlace(
  rows: MemoryRows,
  estimate: MemoryEstimate | null,
  {
    baselineBytes,
    weightBytes,
    kvHeadsKnown,
  }: { baselineBytes: number | null; weightBytes: number | null; kvHeadsKnown: boolean },
): Place {
  const parts: Part[] = [];
  const line = (component: Part['component']) => estimate?.lines.find((line) => line.component === component);
  const weights = tensorBytes(rows.recorded, { what: 'weights', stage: 'load', device: null });
  if (weights !== null) {
    parts.push({
      component: 'model_weights',
      bytes: weights,
      confidence: 'high',
      evidence: `parameter tensors of the process (${dtypesOf(rows, null, 'weights')})`,
    });
  } else if (weightBytes !== null) {
    parts.push({
      component: 'model_weights',
      bytes: weightBytes,
      confidence: 'high',
      evidence:
        'bytes of the parameters in the model file; the runtime keeps one copy, packed for its kernels',
    });
  }
  const cacheBytes = ['decode', 'prefill'].flatMap(
    (stage) => tensorBytes(rows.recorded, { what: 'kv_cache', stage, device: null }) ?? [],
  );
  const kv = line('kv_cache');
  if (cacheBytes.length > 0) {
    parts.push({
      component: 'kv_cache',
      bytes: Math.max(...cacheBytes),
      confidence: 'high',
      evidence: `cache tensors at their largest (${dtypesOf(rows, null, 'kv_cache')})`,
    });
  } else if (kv) {
    parts.push({
      component: 'kv_cache',
      bytes: kv.bytes,
      confidence: kvHeadsKnown ? 'medium' : 'low',
      basis: 'formula' as const,
      evidence: `formula: ${kv.formula}${kvHeadsKnown ? '' : '; KV heads are not known, all heads counted'}`,
    });
  }
  const activations = line('activations');
  if (activations) {
    parts.push({
      component: 'activations',
      bytes: activations.bytes,
      confidence: 'low',
      basis: 'formula' as const,
      evidence: `formula: ${activations.formula}; the CPU allocator does not count them`,
    });
  }
  const software = softwarePart(rows, baselineBytes);
  if (software) parts.push(software);
  return { gpu: null, parts, peakStage: null };
}

/** The engine's code and data: resident memory before the model was loaded, and the runtime's files mapped later. */
function softwarePart(rows: MemoryRows, baselineBytes: number | null): Part | null {
  const baseline = rows.recorded.find(({ point }) => point === 'baseline');
  const byTorch = maxRecorded(rows.recorded, { what: 'rss', stage: 'baseline' });
  if (byTorch !== null && baselineBytes !== null) {
    const ranks = recordedRows(rows.recorded, { what: 'rss', stage: 'baseline' }).length;
    return {
      component: 'framework_overhead',
      bytes: baselineBytes,
      confidence: 'medium',
      evidence: `resident before the model was loaded: Python, torch and transformers${ranks > 1 ? `, ${ranks} processes` : ''}`,
    };
  }
  const largest = highest(rows.rss);
  const file = largest && sampleAt(rows.file, largest.t_ns);
  const anonymous = baseline && sampleAt(rows.anonymous, baseline.t_ns);
  if (file && anonymous) {
    // Mapped weights are weights.
    const mappedModel = maxRecorded(rows.recorded, { what: 'model_file', stage: 'end' }) ?? 0;
    const files = Math.max(0, file.bytes - mappedModel);
    const without = mappedModel > 0 ? `, without ${formatGb(mappedModel)} of the model file` : '';
    return {
      component: 'framework_overhead',
      bytes: files + anonymous.bytes,
      confidence: 'medium',
      evidence: `pages of files at the peak ${formatGb(files)} (code of Node.js and the runtime, mapped files${without}) + allocated before the engine was loaded ${formatGb(anonymous.bytes)}`,
    };
  }
  if (baselineBytes === null) return null;
  return {
    component: 'framework_overhead',
    bytes: baselineBytes,
    confidence: 'medium',
    evidence: 'resident before the model was loaded',
  };
}
