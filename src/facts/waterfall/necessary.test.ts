import { expect, test } from 'vitest';
import { exampleGpu, exampleGpuRoofline } from '../../model/documents/test-gpu-roofline.js';
import { workloadModel, type WorkloadModel } from '../model-work.js';
import { gpuRoofs } from '../roofs.js';
import { tinyWorkload } from '../test-session.js';
import { needFields, necessaryOfParts } from './group-needs.js';
import { gpuPeaks, necessaryOf, peakLines } from './necessary.js';

const model = workloadModel(tinyWorkload()) as WorkloadModel;
const prefill = { phase: 'prefill', batchSize: 2, newTokens: 4, contextTokens: 0 } as const;

test('float32 that ran as TF32 has the peak, the throttling and the label of TF32', () => {
  const [float32, bfloat16] = exampleGpu().compute;
  const tfloat32 = { ...bfloat16!, dtype: 'tfloat32' as const, flops_per_s: 400e12 };
  const roofline = exampleGpuRoofline({ gpus: [exampleGpu({ compute: [float32!, tfloat32] })] });
  const roofs = gpuRoofs('NVIDIA H200', roofline);
  const peaks = gpuPeaks(roofs, 'tfloat32');
  expect(peaks.flops('float32').value).toBe(400e12);
  expect(gpuPeaks(roofs).throttledShare!('float32')).toBeNull();
  // The data sheet states 494.5 TFLOP/s.
  expect(peaks.throttledShare!('float32')).toBeCloseTo(400 / 494.5, 2);
  expect(peakLines(model, prefill, peaks)[0]).toMatch(
    /^float32 as tfloat32 400 TFLOP\/s, bandwidth 4\.00 TB\/s: measured on/,
  );
  expect(peakLines(model, prefill, gpuPeaks(roofs))[0]).toMatch(
    /^float32 50\.0 TFLOP\/s, bandwidth 4\.00 TB\/s: measured on/,
  );
});

test('the roofline of several steps is a sum, and its source says so', () => {
  const peaks = gpuPeaks(gpuRoofs('NVIDIA H200', exampleGpuRoofline()));
  const step = {
    stage_id: 1,
    pid: 1,
    kind: 'prefill' as const,
    point: null,
    iteration: 0,
    step_index: null,
    wall_ns: 1e6,
    batch_size: 2,
    new_tokens: 8,
    context_tokens_sum: 8,
    sizes_from: null,
    steps_here: null,
    steps_elsewhere: null,
    from: 'the stages',
    assumed: false,
    instance: 0,
  };
  const one = necessaryOf(model, prefill, peaks);
  const two = necessaryOfParts([step, { ...step, stage_id: 2 }], 1, model, peaks);
  const [single, sum] = [needFields(one).roofline_ms, needFields(two).roofline_ms];
  expect(sum.value! / single.value!).toBeCloseTo(2, 9);
  expect(single).toMatchObject({ source: expect.stringMatching(/^max\(Σ FLOPs/) });
  expect(sum).toMatchObject({ source: expect.stringMatching(/^Σ over its steps of max\(Σ FLOPs/) });
});
