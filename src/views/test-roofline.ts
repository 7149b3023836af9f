import type { MachineRoofline } from '../model/documents/roofline.js';
import { peakFlops } from './test-operators.js';

const mib = 2 ** 20;

export function testRoofline(): MachineRoofline {
  const level = (set: number): string =>
    set <= 0.03125 * mib ? 'L1' : set <= mib ? 'L2' : set <= 200 * mib ? 'L3' : 'DRAM';
  const rates: [workingSetMib: number, gigabytes: number][] = [
    [0.016, 142],
    [0.25, 88],
    [1, 61],
    [8, 41.3],
    [64, 29.2],
    [128, 28.4],
    [512, 13.4],
    [1024, 12.9],
  ];
  return {
    engine: 'onnxruntime 1.30.0 CPU',
    cpu_model: 'Intel(R) Xeon(R) Processor @ 2.60GHz',
    threads: 1,
    measured_at: '2026-11-20T22:14:40Z',
    seconds: 6.2,
    other_processes_cores: 0.01,
    compute: [
      {
        dtype: 'float32',
        flops_per_s: peakFlops,
        reached_by: 'MatMul 1024×1024×1024',
        runs: 20,
        sd_share: 0.011,
      },
      {
        dtype: 'int8',
        flops_per_s: 612e9,
        reached_by: 'MatMulInteger 1024×1024×1024',
        runs: 20,
        sd_share: 0.014,
      },
    ],
    bandwidth: rates.map(([set, rate]) => ({
      working_set_bytes: set * mib,
      bytes_per_s: rate * 1e9,
      reached_by: 'ReduceSum',
      level: level(set * mib),
      runs: 10,
      sd_share: 0.02,
    })),
    weight_streams: [
      {
        format: 'int4',
        batch_size: 1,
        weights_per_s: 21e9,
        bytes_per_s: 13.1e9,
        reached_by: 'MatMulNBits 1×4096×4096',
      },
    ],
    last_level_cache_bytes: 200 * mib,
    ridge_flop_per_byte: peakFlops / 12.9e9,
  };
}
