import { expect, test } from 'vitest';
import { reportedName } from './predict-device.js';

test('a GPU name may omit the vendor; an ambiguous name means the common variant', () => {
  expect(reportedName('H200')).toBe('NVIDIA H200');
  expect(reportedName('nvidia h200 ')).toBe('NVIDIA H200');
  expect(reportedName('T4')).toBe('Tesla T4');
  expect(reportedName('NVIDIA H200')).toBe('NVIDIA H200');
  // The SXM card; PCIe and NVL are typed in full.
  expect(reportedName('H100')).toBe('NVIDIA H100 80GB HBM3');
  expect(reportedName('H100 PCIe')).toBe('NVIDIA H100 PCIe');
  expect(reportedName('my accelerator')).toBe('my accelerator');
});
