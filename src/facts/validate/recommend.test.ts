import { expect, it } from 'vitest';
import { names, readProfile } from './test-profiles.js';
import { toleranceOf, validateProfiles } from './validate.js';

it('recommends no constant from one model', () => {
  const profile = structuredClone(readProfile('llama-2-7b-float16'));
  const context = profile.memory_breakdown.components!.find(({ component }) => component === 'cuda_context')!;
  context.bytes += 300 * 2 ** 20;
  profile.memory_breakdown.total_measured_bytes! += 300 * 2 ** 20;
  const several = [1, 2, 3, 4].map((n) => ({ source: `${n}.json`, profile }));
  expect(validateProfiles(several, toleranceOf(0.05)).recommendations).toEqual([]);
});

it('names a wrong constant with the value that fits', () => {
  const profiles = names.map((name) => {
    const profile = structuredClone(readProfile(name));
    const context = profile.memory_breakdown.components!.find(
      ({ component }) => component === 'cuda_context',
    )!;
    context.bytes += 300 * 2 ** 20;
    profile.memory_breakdown.total_measured_bytes! += 300 * 2 ** 20;
    return { source: name, profile };
  });
  const { recommendations, components } = validateProfiles(profiles, toleranceOf(0.05));
  expect(recommendations).toHaveLength(1);
  expect(recommendations[0]).toMatchObject({
    constant: 'cudaContext.Hopper',
    profiles: 6,
    models: 6,
    unit: 'bytes',
    current_source: expect.stringContaining('(fitted to 6 runs)') as unknown,
  });
  // 687 MiB in addition to the memory of attention kernels, and 300 more.
  expect(recommendations[0]!.fitted / 2 ** 20).toBeCloseTo(987, 0);
  expect(recommendations[0]!.error_after_bytes).toBeLessThan(8 * 2 ** 20);
  expect(components.find(({ component }) => component === 'cuda_context')!.within_tolerance).toBe(0);
});
