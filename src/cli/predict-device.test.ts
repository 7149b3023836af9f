import { expect, test } from 'vitest';
import { driverName } from './predict-device.js';

test('a GPU name may omit the vendor; an ambiguous name means the common variant', () => {
  expect(driverName('H200')).toBe('NVIDIA H200');
  expect(driverName('nvidia h200 ')).toBe('NVIDIA H200');
  expect(driverName('T4')).toBe('Tesla T4');
  expect(driverName('NVIDIA H200')).toBe('NVIDIA H200');
  // The SXM card; PCIe and NVL are typed in full.
  expect(driverName('H100')).toBe('NVIDIA H100 80GB HBM3');
  expect(driverName('H100 PCIe')).toBe('NVIDIA H100 PCIe');
  expect(driverName('my accelerator')).toBe('my accelerator');
});
