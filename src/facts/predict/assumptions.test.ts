import { expect, test } from 'vitest';
import { exampleGpuRoofline } from '../../model/documents/test-gpu-roofline.js';
import { launchCosts } from './assumptions.js';
import { roofsOfGpu } from './device-roofs.js';

test('a measured launch replaces the empty kernel of the constant, and its source is named', () => {
  const measured = roofsOfGpu('NVIDIA H200', exampleGpuRoofline());
  const { costs, assumptions } = launchCosts('eager', measured);
  const emptyNs = measured.launchNs.value!;
  expect(emptyNs).not.toBe(3000);
  expect(costs.hostPerLaunchNs).toBe(emptyNs + 7000);
  expect(assumptions[0]!.text).toMatch(/of it as for an empty kernel \(measured.*\), the rest/);
  const sheet = launchCosts('eager', roofsOfGpu('NVIDIA H200', null));
  expect(sheet.costs.hostPerLaunchNs).toBe(10_000);
  expect(sheet.assumptions[0]!.text).toContain('3.00 µs of it as for an empty kernel, the rest');
});
