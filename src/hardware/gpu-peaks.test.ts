import { describe, expect, test } from 'vitest';
import { gpuPeakBandwidth, gpuPeakFlops, gpuSheet } from './gpu-peaks.js';
import { gpuSheets } from './gpu-sheets.js';

// SMs × FLOP a clock and SM × boost clock (GHz), from the architecture whitepapers: an oracle that knows nothing of
// the headline figures, so a sparse (doubled) or fp16-accumulate rate cannot pass.
const recomputed: [
  name: string,
  dtype: 'bfloat16' | 'float32' | 'int8',
  perClockAndSm: number,
  ghz: number,
][] = [
  ['NVIDIA A10', 'bfloat16', 1024, 1.695],
  ['NVIDIA A10', 'float32', 256, 1.695],
  ['NVIDIA A10G', 'bfloat16', 512, 1.71],
  ['NVIDIA A100-SXM4-40GB', 'bfloat16', 2048, 1.41],
  ['NVIDIA A100-SXM4-80GB', 'bfloat16', 2048, 1.41],
  ['NVIDIA A100 80GB PCIe', 'float32', 128, 1.41],
  ['NVIDIA A100 80GB PCIe', 'int8', 4096, 1.41],
  ['NVIDIA H100 80GB HBM3', 'bfloat16', 4096, 1.83],
  ['NVIDIA H100 80GB HBM3', 'float32', 256, 1.98],
  ['NVIDIA H100 80GB HBM3', 'int8', 8192, 1.83],
  ['NVIDIA H200', 'bfloat16', 4096, 1.83],
  ['NVIDIA L4', 'bfloat16', 1024, 2.04],
  ['NVIDIA L4', 'float32', 256, 2.04],
  ['NVIDIA L40S', 'float32', 256, 2.52],
  ['NVIDIA GeForce RTX 3090', 'bfloat16', 512, 1.695],
  ['NVIDIA GeForce RTX 3090', 'int8', 2048, 1.695],
  ['NVIDIA GeForce RTX 4090', 'bfloat16', 512, 2.52],
  ['NVIDIA GeForce RTX 5090', 'bfloat16', 512, 2.407],
  ['NVIDIA GeForce RTX 5090', 'float32', 256, 2.407],
  ['AMD Instinct MI250', 'bfloat16', 1024, 1.7],
  ['AMD Instinct MI250X', 'bfloat16', 1024, 1.7],
  ['AMD Instinct MI300X', 'bfloat16', 2048, 2.1],
];

describe('data sheets', () => {
  test.each(recomputed)('%s %s follows from SMs × FLOP/clk/SM × boost', (name, dtype, perClock, ghz) => {
    const sheet = gpuSheet(name)!;
    const tflops = (sheet.smCount * perClock * ghz) / 1000;
    expect(Math.abs(sheet.denseTflops[dtype]! / tflops - 1)).toBeLessThan(0.005);
  });

  test('memory bandwidth of HBM parts follows from pins × data rate', () => {
    // 5120 bit × 2.43 Gbit/s (A100-40), 5120 bit × 5.24 (H100 SXM), 8192 bit × 3.2 a card of two dies (MI250X)
    expect(gpuSheet('NVIDIA A100-SXM4-40GB')!.bandwidthGbps).toBeCloseTo((5120 / 8) * 2.43, -1);
    expect(gpuSheet('NVIDIA H100 80GB HBM3')!.bandwidthGbps).toBeCloseTo((5120 / 8) * 5.234, -1);
    expect(gpuSheet('AMD Instinct MI250X')!.bandwidthGbps).toBeCloseTo(((8192 / 8) * 3.2) / 2, 1);
  });

  test('within a sheet int8 and float8 are twice bfloat16, or the same where the chip has no faster path', () => {
    for (const sheet of gpuSheets) {
      const { bfloat16, float8, int8 } = sheet.denseTflops;
      for (const narrow of [float8, int8]) {
        if (narrow === undefined) continue;
        // GeForce int8 is four times: its bfloat16 rate is halved by float32 accumulation.
        const ratio = narrow / bfloat16!;
        expect([1, 2, 4].some((whole) => Math.abs(ratio / whole - 1) < 0.02)).toBe(true);
      }
    }
  });

  test('a name belongs to one sheet only', () => {
    const names = gpuSheets.flatMap((sheet) => sheet.names);
    expect(new Set(names).size).toBe(names.length);
  });
});

describe('unknown stays unknown', () => {
  test.each(['NVIDIA A10M', 'A100', 'nvidia h200', 'NVIDIA H100', 'AMD Instinct MI250X / MI250', ''])(
    '%s',
    (name) => {
      expect(gpuSheet(name)).toBeNull();
      expect(gpuPeakBandwidth(name)).toMatchObject({ value: null, reason: { code: 'unknown_gpu' } });
    },
  );

  test('A10G is not A10', () => {
    expect(gpuPeakFlops('NVIDIA A10', 'bfloat16')).toMatchObject({ value: 125e12, unit: 'FLOP/s' });
    expect(gpuPeakFlops('NVIDIA A10G', 'bfloat16')).toMatchObject({ value: 70e12 });
  });

  test('a dtype the chip has no path for is missing, not zero: Ampere has no float8', () => {
    expect(gpuPeakFlops('NVIDIA A100-SXM4-80GB', 'float8')).toMatchObject({
      value: null,
      reason: { code: 'no_peak_for_dtype' },
    });
  });
});
