import { estimateMemory } from '../llm/memory-estimate.js';
import type { MemoryResult } from '../model/documents/profile.js';
import { figure, missing, type Figure } from '../model/figure.js';
import type { Workload } from '../model/manifest.js';
import type { SessionDatabase } from '../session/query.js';
import { hostPlace } from './memory-profile/host-place.js';
import { type MemoryRows, readMemoryRows, type RecordedRow } from './memory-profile/rows.js';
import { decoderModel } from './model-work.js';

type Point = NonNullable<RecordedRow['point']>;

/**
 * Memory of the engine's process over its first clean launch, as in a memory profile: baseline before the engine is loaded,
 * after warm-up, and the peak counted by the kernel. The breakdown is at the peak.
 */
export async function readMemory(
  database: SessionDatabase,
  workload: Workload,
): Promise<MemoryResult | null> {
  const [first] = await database.query<{ pid: number }>(
    `SELECT pid FROM memory WHERE execution_id = 'clean' AND point = 'baseline' ORDER BY t_ns LIMIT 1`,
  );
  if (!first) return null;
  const rows = await readMemoryRows(database, { execution_id: 'clean' }, first.pid);
  const marks = rows.recorded.flatMap(({ t_ns, bytes, point, source }) =>
    point === null ? [] : [{ t_ms: t_ns / 1e6, point, bytes, source }],
  );
  const pointFigure = (point: Point, why: string): Figure => {
    const mark = marks.find((candidate) => candidate.point === point);
    return mark ? figure(mark.bytes, 'B', mark.source) : missing('not_reached', why);
  };
  const baseline = pointFigure('baseline', 'the process recorded no memory before loading');
  const peak = pointFigure('peak', 'the run stopped before its last repeat');
  return {
    baseline_bytes: baseline,
    post_warmup_bytes: pointFigure('post_warmup', 'the run stopped during warm-up'),
    peak_bytes: peak,
    breakdown: peak.value === null ? [] : breakdown(rows, peak.value, baseline.value, workload),
    series: rows.rss.map(({ t_ns, bytes }) => ({ t_ms: t_ns / 1e6, bytes })),
    marks: marks.map(({ t_ms, point, bytes }) => ({ t_ms, point, bytes })),
    phases: rows.phases.map(({ label, start_ns, end_ns }) => ({
      label,
      start_ms: start_ns / 1e6,
      end_ms: end_ns / 1e6,
    })),
  };
}

/** Component names of this document, which is older than memory profiles. */
const componentNames = {
  model_weights: 'weights',
  kv_cache: 'kv_cache',
  activations: 'activations',
  framework_overhead: 'runtime',
} as const;

function breakdown(
  rows: MemoryRows,
  peakBytes: number,
  baselineBytes: number | null,
  workload: Workload,
): MemoryResult['breakdown'] {
  const model = decoderModel(workload);
  const { batch_size: batchSize, input_len: inputLen, output_len: outputLen } = workload;
  const estimate =
    'architecture' in model && batchSize && inputLen && outputLen
      ? estimateMemory(model.architecture, {
          engine: 'onnx',
          batchSize,
          inputLen,
          outputLen,
          storage: model.storage,
        })
      : null;
  const weightBytes = workload.model?.weight_bytes ?? null;
  const { parts } = hostPlace(rows, estimate, { baselineBytes, weightBytes, kvHeadsKnown: true });
  const knownParts = parts.flatMap(({ component, bytes, confidence, evidence }): MemoryResult['breakdown'] =>
    component in componentNames && confidence !== 'unknown'
      ? [{ component: componentNames[component as keyof typeof componentNames], bytes, confidence, evidence }]
      : [],
  );
  const knownBytes = knownParts.reduce((sum, { bytes }) => sum + bytes, 0);
  return [
    ...knownParts,
    {
      component: 'residual',
      bytes: peakBytes - knownBytes,
      confidence: 'low',
      evidence:
        "measured peak minus the rows above: mostly the runtime's arena, which grows in powers of two",
    },
  ];
}
