import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testFolder } from '../session/test-folder.js';
import { identify } from './identify.js';

const original = 'test/fixtures/memory-profiles-h200/llama-2-7b-float16.json';
const folder = testFolder();
type Profile = Record<string, Record<string, unknown>>;
const writeProfile = (name: string, change: (profile: Profile) => unknown) => {
  const path = join(folder, name);
  const profile = JSON.parse(readFileSync(original, 'utf8')) as Profile;
  writeFileSync(path, JSON.stringify(change(profile) ?? profile));
  return path;
};
const facts = async (path: string) => {
  const importer = await identify(path);
  expect(importer.name).toBe('memory-profile');
  return importer.facts(path, {} as never);
};

test('recognizes a profile, and a report document with one, by content', async () => {
  const context = { hardware: { gpu_name: 'NVIDIA H200', gpu_count: 1 }, software: { model: 'llama-2-7b' } };
  const { realtime_zero_ns: zero, ...rest } = await facts(original);
  expect(rest).toMatchObject(context);
  expect(zero).toBe(BigInt(Date.parse('2026-11-21T11:46:39.540Z')) * 1_000_000n);
  const report = writeProfile('report.json', (profile) => ({
    schema: 'inferscope/memory/1.0',
    data: { session: {}, profile },
  }));
  expect(await facts(report)).toMatchObject(context);
});

test.each<[string, (profile: Profile) => unknown, string]>([
  [
    'negative.json',
    (profile) => void ((profile['memory_measurements']!['peak'] as { total_bytes: number }).total_bytes = -5),
    '.memory_measurements.peak.total_bytes is -5',
  ],
  [
    'huge.json',
    (profile) => void ((profile['memory_breakdown'] as { kv_cache_gb: number }).kv_cache_gb = 1e300),
    '.memory_breakdown.kv_cache_gb is 1e+300',
  ],
  ['other.json', (profile) => void delete profile['memory_breakdown'], 'memory_breakdown: '],
])('rejects %s', async (name, change, why) => {
  const path = writeProfile(name, change);
  await expect(facts(path)).rejects.toMatchObject({
    code: 'E_TRACE_FILE',
    parts: { why: expect.stringContaining(why) as string },
  });
});

test('a truncated profile is an error', async () => {
  const path = join(folder, 'cut.json');
  writeFileSync(path, readFileSync(original, 'utf8').slice(0, -20));
  await expect(facts(path)).rejects.toMatchObject({ code: 'E_TRACE_FILE' });
});
