import { describe, expect, test } from 'vitest';
import { gpuHostLink, gpuPeakBandwidth, gpuPeakFlops, gpuPeerLink, gpuSheet } from './gpu-peaks.js';
import { gpuSheets } from './gpu-sheets.js';

// SMs × FLOP per clock and SM × boost clock (GHz), from the architecture whitepapers. This is independent of the
// headline figures, so a sparse (doubled) or fp16-accumulate rate fails. B200, GB200, B300 and GB300 are missing
// because NVIDIA does not publish their clocks.
const recomputed: [
  name: string,
  dtype: 'bfloat16' | 'float16' | 'float32' | 'float8' | 'int8' | 'float6' | 'nvfp4' | 'mxfp4',
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
  ['Tesla V100-SXM2-16GB', 'float16', 1024, 1.53],
  ['Tesla V100-SXM2-32GB', 'float32', 128, 1.53],
  ['Tesla T4', 'float16', 1024, 1.59],
  ['Tesla T4', 'int8', 2048, 1.59],
  ['NVIDIA A30', 'bfloat16', 2048, 1.44],
  ['NVIDIA A40', 'bfloat16', 1024, 1.74],
  ['NVIDIA RTX A6000', 'bfloat16', 1024, 1.8],
  ['NVIDIA GeForce RTX 3090 Ti', 'bfloat16', 512, 1.86],
  ['NVIDIA GeForce RTX 3080 Ti', 'float32', 256, 1.665],
  ['NVIDIA GeForce RTX 3080 Ti', 'bfloat16', 512, 1.665],
  ['NVIDIA GeForce RTX 3070', 'bfloat16', 512, 1.725],
  ['NVIDIA L40', 'bfloat16', 512, 2.49],
  ['NVIDIA L40', 'float8', 1024, 2.49],
  ['NVIDIA L40S', 'bfloat16', 1024, 2.49],
  ['NVIDIA RTX 6000 Ada Generation', 'bfloat16', 1024, 2.505],
  ['NVIDIA GeForce RTX 4090', 'float8', 1024, 2.52],
  ['NVIDIA GeForce RTX 4080 SUPER', 'bfloat16', 512, 2.55],
  ['NVIDIA GeForce RTX 4080', 'bfloat16', 512, 2.505],
  ['NVIDIA GeForce RTX 4080', 'int8', 2048, 2.505],
  ['NVIDIA GeForce RTX 4070 Ti SUPER', 'bfloat16', 512, 2.61],
  ['NVIDIA GeForce RTX 4070 Ti', 'bfloat16', 512, 2.61],
  ['NVIDIA GeForce RTX 4070 SUPER', 'bfloat16', 512, 2.475],
  ['NVIDIA GeForce RTX 4070', 'bfloat16', 512, 2.475],
  ['NVIDIA GeForce RTX 5080', 'bfloat16', 512, 2.617],
  ['NVIDIA GeForce RTX 5080', 'float8', 1024, 2.617],
  ['NVIDIA GeForce RTX 5070 Ti', 'bfloat16', 512, 2.452],
  ['NVIDIA GeForce RTX 5070', 'bfloat16', 512, 2.512],
  ['NVIDIA RTX PRO 6000 Blackwell Workstation Edition', 'bfloat16', 1024, 2.617],
  ['NVIDIA RTX PRO 6000 Blackwell Workstation Edition', 'float32', 256, 2.617],
  ['NVIDIA GH200 480GB', 'bfloat16', 4096, 1.83],
  ['AMD Instinct MI100', 'float16', 1024, 1.502],
  ['AMD Instinct MI210', 'bfloat16', 1024, 1.7],
  ['AMD Instinct MI300A', 'bfloat16', 2048, 2.1],
  ['AMD Instinct MI350X', 'bfloat16', 4096, 2.2],
  ['AMD Instinct MI355X', 'bfloat16', 4096, 2.4],
  ['AMD Instinct MI355X', 'float32', 256, 2.4],
  ['AMD Instinct MI350X', 'mxfp4', 16_384, 2.2],
  ['AMD Instinct MI355X', 'mxfp4', 16_384, 2.4],
  ['AMD Instinct MI355X', 'float6', 16_384, 2.4],
  ['NVIDIA GeForce RTX 5090', 'nvfp4', 4096, 2.407],
  ['NVIDIA GeForce RTX 5080', 'nvfp4', 4096, 2.617],
  ['NVIDIA GeForce RTX 5070 Ti', 'nvfp4', 4096, 2.452],
  ['NVIDIA GeForce RTX 5070', 'mxfp4', 4096, 2.512],
  ['NVIDIA RTX PRO 6000 Blackwell Workstation Edition', 'nvfp4', 4096, 2.617],
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
    // 5120 bit × 2.43 Gbit/s (A100-40), 5120 bit × 5.24 (H100 SXM), 8192 bit × 3.2 per card of two dies (MI250X)
    expect(gpuSheet('NVIDIA A100-SXM4-40GB')!.bandwidthGbps).toBeCloseTo((5120 / 8) * 2.43, -1);
    expect(gpuSheet('NVIDIA H100 80GB HBM3')!.bandwidthGbps).toBeCloseTo((5120 / 8) * 5.234, -1);
    expect(gpuSheet('AMD Instinct MI250X')!.bandwidthGbps).toBeCloseTo(((8192 / 8) * 3.2) / 2, 1);
  });

  test.each([
    // Bus width in bits × Gbit/s per pin / 8, from the vendors' memory specifications.
    ['NVIDIA GeForce RTX 3090', 384, 19.5],
    ['NVIDIA GeForce RTX 4090', 384, 21],
    ['NVIDIA GeForce RTX 4080', 256, 22.4],
    ['NVIDIA GeForce RTX 4070', 192, 21],
    ['NVIDIA GeForce RTX 5090', 512, 28],
    ['NVIDIA GeForce RTX 5080', 256, 30],
    ['NVIDIA RTX PRO 6000 Blackwell Workstation Edition', 512, 28],
    ['NVIDIA RTX A6000', 384, 16],
    ['NVIDIA L40S', 384, 18],
    ['Tesla T4', 256, 10],
    ['AMD Instinct MI210', 4096, 3.2],
    ['AMD Instinct MI100', 4096, 2.4],
  ])('memory bandwidth of %s follows from its bus', (name, bits, rate) => {
    expect(gpuSheet(name)!.bandwidthGbps).toBeCloseTo((bits / 8) * rate, 1);
  });

  test('within a sheet int8 and float8 are twice float16, or equal if the chip has no faster path', () => {
    for (const sheet of gpuSheets) {
      // Before Ampere there is no bfloat16; on all except the MI100 it is as fast as float16.
      const { float16, float8, int8 } = sheet.denseTflops;
      for (const narrow of [float8, int8]) {
        if (narrow === undefined) continue;
        // GeForce int8 is four times float16, which float32 accumulation halves.
        const ratio = narrow / float16!;
        expect([1, 2, 4].some((wholeGpu) => Math.abs(ratio / wholeGpu - 1) < 0.02)).toBe(true);
      }
    }
  });

  test('a name belongs to only one sheet', () => {
    const names = gpuSheets.flatMap((sheet) => sheet.names);
    expect(new Set(names).size).toBe(names.length);
    const ids = gpuSheets.flatMap((sheet) => sheet.pciIds ?? []);
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(/^(10de|1002):[0-9a-f]{4}$/);
  });

  test('every sheet is complete and names its source', () => {
    for (const sheet of gpuSheets) {
      expect(sheet.names.length + (sheet.pciIds?.length ?? 0)).toBeGreaterThan(0);
      expect(sheet.denseTflops.float32).toBeGreaterThan(1);
      expect(sheet.denseTflops.float16).toBeGreaterThan(sheet.denseTflops.float32!);
      for (const figure of [sheet.bandwidthGbps, sheet.memoryGb, sheet.smCount])
        expect(figure).toBeGreaterThan(1);
      expect(sheet.source.document.length).toBeGreaterThan(10);
      expect(sheet.source.year).toBeGreaterThan(2017);
    }
  });
});

test.each([
  // Boards and racks: dense PFLOPS of all GPUs in FP4 and FP8, and the number of GPUs.
  ['NVIDIA B200', 72, 36, 8],
  ['NVIDIA B300 SXM6 AC', 108, 36, 8],
  ['NVIDIA GB200', 720, 360, 72],
  ['NVIDIA GB300', 1080, 360, 72],
])('%s has its share of the dense FP4 peak of its board', (name, fp4, fp8, gpus) => {
  expect(gpuPeakFlops(name, 'nvfp4').value).toBe((fp4 * 1e15) / gpus);
  expect(gpuPeakFlops(name, 'float8').value).toBe((fp8 * 1e15) / gpus);
});

test('a 4-bit format without hardware support is missing: Hopper, and NVFP4 on CDNA 4', () => {
  for (const [name, dtype] of [
    ['NVIDIA H200', 'nvfp4'],
    ['AMD Instinct MI355X', 'nvfp4'],
    ['AMD Instinct MI300X', 'mxfp4'],
  ] as const) {
    expect(gpuPeakFlops(name, dtype)).toMatchObject({ value: null, reason: { code: 'no_peak_for_dtype' } });
  }
  expect(gpuSheet('NVIDIA B300')).toBeNull();
});

describe('names shared by several products', () => {
  test('the PCI id decides: the RTX 3080 with 10 and with 12 GB have one name', () => {
    const name = 'NVIDIA GeForce RTX 3080';
    expect(gpuSheet(name)).toBeNull();
    expect(gpuSheet(name, '10DE:2206')).toMatchObject({ memoryGb: 10, smCount: 68 });
    expect(gpuSheet(name, '10de:220a')).toBeNull();
    expect(gpuPeakFlops(name, 'bfloat16', '10de:2206').value).toBe(59.5e12);
  });

  test('the PCI id decides for a driver that does not know its device yet', () => {
    expect(gpuSheet('NVIDIA Graphics Device', '10de:2335')).toMatchObject({ names: ['NVIDIA H200'] });
    expect(gpuSheet('AMD Instinct MI250X / MI250', '1002:7408')).toMatchObject({ smCount: 110 });
    expect(gpuSheet('AMD Instinct MI250X / MI250', '1002:740c')).toBeNull();
  });

  test('a PCI id never overrides a name: a virtual GPU has the id of the whole GPU', () => {
    expect(gpuSheet('NVIDIA H200', '10de:2330')).toMatchObject({ bandwidthGbps: 4800 });
    expect(gpuSheet('GRID H100XM-10C', '10de:2330')).toBeNull();
  });
});

describe('MIG instances', () => {
  test('have their share of SMs and memory, with a note', () => {
    const sheet = gpuSheet('NVIDIA H100 80GB HBM3 MIG 3g.40gb')!;
    expect(sheet).toMatchObject({ smCount: 60, memoryGb: 40, bandwidthGbps: 1675 });
    expect(sheet.denseTflops.bfloat16).toBeCloseTo((989 * 60) / 132, 6);
    expect(sheet.note).toContain('60 of 132 SMs and 50 % of the memory');
    expect(sheet.peerGbps).toBeUndefined();
    expect(sheet.l2Bytes).toBe(25 * 2 ** 20);
    // One compute slice has an eighth of the L2, with or without a quarter of the memory (MIG User Guide).
    expect(gpuSheet('NVIDIA H100 80GB HBM3 MIG 1g.20gb')!.l2Bytes).toBe(6.25 * 2 ** 20);
    expect(gpuPeakFlops('NVIDIA H100 80GB HBM3 MIG 3g.40gb', 'bfloat16')).toMatchObject({
      source: expect.stringContaining('MIG 3g.40gb'),
    });
  });

  test.each([
    // nvidia-smi mig -lgip: SM column. A 1g profile with twice the memory has more SMs on Hopper, not on Ampere.
    ['NVIDIA A100-SXM4-40GB MIG 1g.5gb', 14, 1 / 8],
    ['NVIDIA A100-SXM4-80GB MIG 1g.20gb', 14, 2 / 8],
    ['NVIDIA A100-SXM4-80GB MIG 7g.80gb', 98, 1],
    ['NVIDIA H100 80GB HBM3 MIG 1g.20gb', 26, 2 / 8],
    ['NVIDIA H200 MIG 1g.18gb', 16, 1 / 8],
    ['NVIDIA H200 MIG 1g.18gb+me', 16, 1 / 8],
    ['NVIDIA H200 MIG 7g.141gb', 132, 1],
    ['NVIDIA A30 MIG 2g.12gb', 28, 1 / 2],
  ])('%s has its SMs and its share of the memory', (name, sms, memory) => {
    const sheet = gpuSheet(name)!;
    const wholeGpu = gpuSheet(name.split(' MIG ')[0]!)!;
    expect(sheet.smCount).toBe(sms);
    expect(sheet.bandwidthGbps / wholeGpu.bandwidthGbps).toBeCloseTo(memory, 9);
  });

  test.each(['NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb', 'NVIDIA B200 MIG 1g.23gb', 'NVIDIA H200 MIG 5g.100gb'])(
    '%s is unknown, and asks for a measurement',
    (name) => {
      expect(gpuSheet(name)).toBeNull();
      expect(gpuPeakBandwidth(name)).toMatchObject({
        reason: { code: 'unknown_gpu', text: expect.stringContaining('inferscope roofline') },
      });
    },
  );
});

test('links: one direction of 16 lanes after line coding, NVLink of one GPU', () => {
  // PCIe 5.0: 32 GT/s × 16 lanes × 128/130 / 8
  expect(gpuHostLink('NVIDIA H200').value! / 1e9).toBeCloseTo((32 * 16 * (128 / 130)) / 8, 1);
  expect(gpuHostLink('NVIDIA A10').value! / 1e9).toBeCloseTo((16 * 16 * (128 / 130)) / 8, 1);
  // 18 links × 50 GB/s, both directions
  expect(gpuPeerLink('NVIDIA H200').value! / 1e9).toBe((18 * 50) / 2);
  expect(gpuPeerLink('NVIDIA L4')).toMatchObject({ reason: { code: 'no_link' } });
});

describe('unknown GPUs', () => {
  test.each(['NVIDIA A10M', 'A100', 'nvidia h200', 'NVIDIA H100', 'AMD Instinct MI250X / MI250', ''])(
    '"%s" has no sheet',
    (name) => {
      expect(gpuSheet(name)).toBeNull();
      expect(gpuPeakBandwidth(name)).toMatchObject({ value: null, reason: { code: 'unknown_gpu' } });
    },
  );

  test('A10G is not A10', () => {
    expect(gpuPeakFlops('NVIDIA A10', 'bfloat16')).toMatchObject({ value: 125e12, unit: 'FLOP/s' });
    expect(gpuPeakFlops('NVIDIA A10G', 'bfloat16')).toMatchObject({ value: 70e12 });
  });

  test('a dtype without hardware support is missing, not zero: Ampere has no float8', () => {
    expect(gpuPeakFlops('NVIDIA A100-SXM4-80GB', 'float8')).toMatchObject({
      value: null,
      reason: { code: 'no_peak_for_dtype' },
    });
  });
});
