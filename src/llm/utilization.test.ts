import { describe, expect, it } from 'vitest';
import { presetArchitecture } from './presets.js';
import { rooflineTime } from './roofline-time.js';
import { floatStorage } from './storage.js';
import { arithmeticIntensity, boundOf, mbu, mfuOfWork } from './utilization.js';
import { stageWork } from './work.js';
import { totalWork } from './work-totals.js';

const h100 = { peaks: { bfloat16: 989e12 }, bandwidth: 3350e9 };

describe('mfu and mbu', () => {
  const flops = (float16: number) => ({ ...totalWork([]), flops_by_dtype: { float16 } });

  it('equal the published ratios', () => {
    // gpt-fast: 1397 GB/s of an A100-80's 2039 is 68.5 %. FlashAttention-2 (arXiv 2307.08691): 225 of 312 TFLOP/s is 72 %.
    expect(mbu(1397e9, 1, 2039e9).value).toBeCloseTo(0.685, 3);
    expect(mfuOfWork(flops(225e12), 1, { float16: 312e12 }).value).toBeCloseTo(0.72, 2);
  });

  it('over 1 are returned unchanged', () => {
    expect(mfuOfWork(flops(2e12), 1, { float16: 1e12 })).toMatchObject({ value: 2, unit: 'ratio' });
  });

  it('are missing with a reason without a peak or a time', () => {
    expect(mbu(1, 0, 1)).toMatchObject({ value: null, reason: { code: 'no_time' } });
    expect(mbu(1, Number.NaN, 1).value).toBeNull();
    const work = { ...totalWork([]), flops_by_dtype: { float8: 1 } };
    expect(mfuOfWork(work, 1, { bfloat16: 1 })).toMatchObject({ reason: { code: 'unknown_peak' } });
  });

  it("use each dtype's own peak for mixed dtypes", () => {
    const work = { ...totalWork([]), flops_by_dtype: { float8: 100, bfloat16: 30 } };
    // 100/200 + 30/100 = 0.8 s at peak, in 2 s.
    expect(mfuOfWork(work, 2, { float8: 200, bfloat16: 100 }).value).toBeCloseTo(0.4, 12);
  });
});

describe('the roofline', () => {
  it('has FLOPs per byte', () => {
    expect(arithmeticIntensity(600, 3)).toBe(200);
  });

  it('finds decode memory-bound and a long prefill compute-bound, at the times of a hand calculation', () => {
    const a = presetArchitecture('llama-2-7b');
    const storage = floatStorage('bfloat16');
    const decode = totalWork(
      stageWork(a, { phase: 'decode', batchSize: 1, newTokens: 1, contextTokens: 100 }, storage),
    );
    // (2·6,607,343,616 + 100·524,288) B / 3350 GB/s = 3.96 ms, activations add 0.1 %.
    const d = boundOf(decode, h100.peaks, h100.bandwidth);
    expect(d).toMatchObject({ bound: 'memory' });
    expect('roofline_s' in d && d.roofline_s * 1e3).toBeCloseTo(3.96, 1);
    const prefill = totalWork(
      stageWork(a, { phase: 'prefill', batchSize: 1, newTokens: 2048, contextTokens: 0 }, storage),
    );
    // 2·2048·6.476e9 + 4·32·4096·2,098,176 = 27.63 TFLOP / 989 = 27.9 ms
    const p = boundOf(prefill, h100.peaks, h100.bandwidth);
    expect(p).toMatchObject({ bound: 'compute' });
    expect('roofline_s' in p && p.roofline_s * 1e3).toBeCloseTo(27.9, 1);
  });

  it('is unknown if a peak is', () => {
    const work = totalWork([]);
    expect(boundOf(work, {}, null)).toMatchObject({ value: null, reason: { code: 'unknown_peak' } });
    expect(boundOf({ ...work, flops_by_dtype: { int8: 1 } }, h100.peaks, 1)).toMatchObject({ value: null });
  });

  it('the time one by one is at least the time all at once, and is the sum over classes', () => {
    const ops = stageWork(
      presetArchitecture('llama-3.1-8b'),
      { phase: 'prefill', batchSize: 1, newTokens: 512, contextTokens: 0 },
      floatStorage('bfloat16'),
    );
    const time = rooflineTime(ops, h100.peaks, h100.bandwidth);
    if ('reason' in time) throw new Error(time.reason.text);
    expect(time.one_by_one_s).toBeGreaterThan(time.roofline_s);
    expect(time.by_class.reduce((s, c) => s + c.seconds, 0)).toBeCloseTo(time.one_by_one_s, 12);
    // Two operations by hand: 10 s of compute with 1 of memory, then 1 with 4: 14 one by one, 11 at once.
    const [first] = ops;
    if (!first) throw new Error('no operations');
    const bytes = { weights: 0, kv_read: 0, kv_write: 0, activations_out: 0 };
    const two = [
      { ...first, flops: 10, bytes: { ...bytes, activations_in: 1 } },
      { ...first, flops: 1, bytes: { ...bytes, activations_in: 4 } },
    ];
    expect(rooflineTime(two, { bfloat16: 1 }, 1)).toMatchObject({ roofline_s: 11, one_by_one_s: 14 });
  });
});
