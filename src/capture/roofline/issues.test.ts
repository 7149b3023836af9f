import { expect, test } from 'vitest';
import { exampleGpu } from '../../model/documents/test-gpu-roofline.js';
import { gemmCase } from './gemm-search.js';
import { outlierIssues, roofIssues } from './issues.js';
import { unmeasuredLine } from './test-lines.js';

test('a throttled peak has an issue: a power cap as information, heat as a warning', () => {
  expect(roofIssues(exampleGpu(), [])).toMatchObject([
    {
      code: 'throttled',
      severity: 'info',
      count: 1,
      text: expect.stringContaining('power cap, down to 1\u00a0755 MHz'),
    },
  ]);
  const [first] = exampleGpu().bandwidth;
  const hot = exampleGpu({ compute: [], bandwidth: [{ ...first!, throttled_by: ['hw_thermal_slowdown'] }] });
  expect(roofIssues(hot, [])).toMatchObject([{ code: 'throttled', severity: 'warning' }]);
});

test('above the data sheet is an error, far below a warning; wide spread and missing kernels are reported', () => {
  const [peak] = exampleGpu().compute;
  const throttled = (share: number) =>
    exampleGpu({
      compute: [{ ...peak!, of_sheet: { value: share, unit: 'ratio', source: 'x' } }],
      bandwidth: [],
    });
  expect(roofIssues(throttled(1.1), []).map(({ code }) => code)).toEqual(['above_data_sheet']);
  expect(roofIssues(throttled(0.3), []).map(({ code }) => code)).toEqual(['below_data_sheet']);
  expect(roofIssues(throttled(0.8), [])).toEqual([]);
  const wide = exampleGpu({ compute: [{ ...peak!, sd_share: 0.2 }], bandwidth: [] });
  expect(roofIssues(wide, []).map(({ code }) => code)).toEqual(['wide_spread']);
  const none = unmeasuredLine(
    gemmCase({ dtype: 'float8', m: 256, n: 256, k: 256 }),
    'unsupported',
    'no float8 here',
  );
  expect(roofIssues(throttled(0.8), [none])).toMatchObject([
    { code: 'unsupported', severity: 'info', text: expect.stringContaining('float8 GEMM was not measured') },
  ]);
});

test('names a GPU that is slower than others of the same name', () => {
  const [, peak] = exampleGpu().compute;
  const slower = (share: number) =>
    exampleGpu({
      index: 1,
      scope: 'compared',
      compute: [{ ...peak!, median_ns: peak!.median_ns / share }],
      bandwidth: [],
    });
  expect(outlierIssues([exampleGpu(), slower(0.97)])).toEqual([]);
  expect(outlierIssues([exampleGpu(), slower(0.9)])).toMatchObject([
    {
      code: 'gpus_differ',
      text: expect.stringContaining('cuda:1 (NVIDIA H200) reaches 90 % of cuda:0 in bfloat16 GEMM'),
    },
  ]);
});
