import { expect, test } from 'vitest';
import { document } from '../../model/document.js';
import { rooflineDocumentSchema, rooflineVersion } from '../../model/documents/roofline.js';
import { handGpuRoofline } from '../../model/documents/test-gpu-roofline.js';
import { rooflineSummary } from './roofline.js';

const made = document(
  'roofline',
  rooflineVersion,
  { roofline: null, cached: false, age_s: 0, gpu: handGpuRoofline(), gpu_cached: true, gpu_age_s: 7200 },
  [{ code: 'throttled', severity: 'info', text: 'Clocks were throttled.' }],
);
const text = rooflineSummary(made, { width: 80 });

test('every figure with the data sheet beside it, within 80 columns', () => {
  expect(rooflineDocumentSchema.parse(made).data.gpu).toEqual(handGpuRoofline());
  for (const line of text.split('\n')) expect([...line].length).toBeLessThanOrEqual(80);
  expect(text).toMatch(/measured\s2 hours ago/);
  expect(text).toContain('cuda:0 · NVIDIA H200 · 132 SMs');
  // 800 of 989 TFLOP/s, ridge 800 / 4; the star says that clocks were throttled.
  expect(text).toMatch(/bfloat16 +800 TFLOP\/s\* +81 % +0\.4 % +200 +1755 +612 +8192³/);
  expect(text).toMatch(/copy +3\.90 TB\/s +81 %/);
  expect(text).toMatch(/launch +2\.40 µs of host time · 1\.30 µs from kernel to kernel/);
  expect(text).toContain('all-reduce, 2 GPUs');
  expect(text).toMatch(/cuda:1 +NVIDIA H200, of cuda:0’s: float32 100 % · bfloat16 100 %\*/);
  expect(text).toContain('Clocks were throttled.');
});

test('documents of 1.0 are still read', () => {
  const old = {
    schema: 'inferscope/roofline/1.0',
    tool_version: '0.1.0',
    data: {
      roofline: {
        engine: 'onnxruntime 1.30.0 CPU',
        cpu_model: 'a CPU',
        threads: 1,
        measured_at: '2026-11-20T22:14:00.000Z',
        seconds: 8,
        compute: [],
        bandwidth: [],
        weight_streams: [],
        last_level_cache_bytes: null,
        ridge_flop_per_byte: 10,
      },
      cached: true,
      age_s: 3,
    },
    issues: [],
  };
  expect(rooflineDocumentSchema.parse(old).data).toMatchObject({ gpu: null, gpu_cached: false });
});
