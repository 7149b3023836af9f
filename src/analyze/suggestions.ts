import { countParameters } from '../llm/parameters.js';
import type { StageResult, Suggestion } from '../model/documents/profile.js';
import type { MachineRoofline } from '../model/documents/roofline.js';
import type { Workload } from '../model/manifest.js';
import { workloadModel } from './model-work.js';

/** A gain smaller than this share of the step is not worth a line. */
const worthwhile = 0.1;

/**
 * Changes to the decode step whose gain this machine's measured weight streams let one expect: the time of the matrix
 * products is replaced by parameters / measured rate of the other format or batch; all else stays as measured.
 */
export function suggestions(
  workload: Workload,
  stages: readonly StageResult[],
  roofline: MachineRoofline | null,
): Suggestion[] {
  const decode = stages.find((stage) => stage.kind === 'decode');
  const stepMs = decode?.duration_ms.value ?? null;
  const gemm = decode?.breakdown?.by_class.find((row) => row.class === 'gemm');
  const model = workloadModel(workload);
  if (!decode || stepMs === null || !gemm || !roofline || !('architecture' in model)) return [];
  const weights = countParameters(model.architecture).active_matmul;
  const batch = workload.batch_size ?? 1;
  const format = workload.model?.dtype ?? '';
  // On a busy machine the profiled operators alone may exceed the clean step: then only their shares are used.
  const scale = Math.min(1, stepMs / decode.breakdown!.operators_ms);
  const restMs = stepMs - gemm.ms * scale;
  const withStream = (streamFormat: string, batchSize: number): number | null => {
    const stream = roofline.weight_streams.find(
      (s) => s.format === streamFormat && s.batch_size === batchSize,
    );
    return stream ? restMs + (weights / stream.weights_per_s) * 1e3 : null;
  };
  const found: Suggestion[] = [];
  const int4Ms = format === 'float32' ? withStream('int4', batch) : null;
  if (int4Ms !== null && int4Ms < stepMs * (1 - worthwhile)) {
    found.push({
      stage: 'decode',
      change: 'int4 weights',
      flag: '--dtype int4',
      expected_ms: int4Ms,
      per: 'instance',
      assumption:
        'matrix products stream int4 weights at the rate measured here, and all else stays as it is',
    });
  }
  const larger = roofline.weight_streams
    .map((stream) => stream.batch_size)
    .filter((size) => size > batch)
    .sort((x, y) => x - y)[0];
  const batchMs = larger === undefined ? null : withStream(format, larger);
  if (larger !== undefined && batchMs !== null) {
    const growth = larger / batch;
    // Everything outside the matrix products is per sequence: attention, norms, sampling.
    const perToken = (batchMs - restMs + restMs * growth) / larger;
    if (perToken < (stepMs / batch) * (1 - worthwhile)) {
      found.push({
        stage: 'decode',
        change: `batch ${larger}`,
        flag: `--batch-size ${larger}`,
        expected_ms: perToken,
        per: 'token',
        assumption: `matrix products reach the rate measured here at batch ${larger}, and all else grows with the batch`,
      });
    }
  }
  return found;
}
