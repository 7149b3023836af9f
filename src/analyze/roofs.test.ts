import { expect, test } from 'vitest';
import type { MachineRoofline } from '../model/documents/roofline.js';
import { bandwidthAt, computePeaks } from './roofs.js';
import { handRoofline, mebibyte } from './test-session.js';

const roofline: MachineRoofline = handRoofline();
const at = (mib: number) => bandwidthAt(roofline, mib * mebibyte);

test('on a measured size its own rate, outside them the nearest', () => {
  expect(at(4)).toEqual({ bytesPerS: 40e9, level: 'L3' });
  expect(at(0.01)).toEqual({ bytesPerS: 100e9, level: 'L2' });
  expect(at(1)).toEqual({ bytesPerS: 100e9, level: 'L2' });
  expect(at(9999)).toEqual({ bytesPerS: 10e9, level: 'DRAM' });
});

test('between two sizes it is linear over the logarithm of the size', () => {
  // 2 is half-way from 1 to 4 in the logarithm: (100 + 40) / 2. 8 from 4 to 16: (40 + 20) / 2.
  expect(at(2).bytesPerS).toBeCloseTo(70e9, 0);
  expect(at(8).bytesPerS).toBeCloseTo(30e9, 0);
  expect(at(8).level).toBe('L3');
  // From 16 (20 GB/s) to 64 (10): log4(x / 16).
  expect(at(32).bytesPerS).toBeCloseTo(15e9, 0);
});

test('between the last-level cache and DRAM its size decides which is named', () => {
  expect(roofline.last_level_cache_bytes).toBe(32 * mebibyte);
  expect([at(17).level, at(32).level, at(33).level, at(63).level]).toEqual(['L3', 'L3', 'DRAM', 'DRAM']);
  expect(bandwidthAt({ ...roofline, last_level_cache_bytes: null }, 20 * mebibyte).level).toBe('DRAM');
});

test('a set between two cache levels does not fit the smaller one', () => {
  expect(at(2).level).toBe('L3');
});

test('peaks by dtype', () => {
  expect(computePeaks(roofline)).toEqual({ float32: 100e9, int8: 400e9 });
});
