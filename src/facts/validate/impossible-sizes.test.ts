import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { profileFieldsSchema } from './profile-fields.js';
import { toleranceOf, validateProfiles } from './validate.js';

const text = readFileSync('test/fixtures/memory-profiles-h200/llama-2-7b-float16.json', 'utf8');

test.each([
  ['negative', (value: string) => `-${value}`],
  ['beyond every machine', () => '1e308'],
])('rejects a profile with unchanged bytes if its GB figures are %s', (_name, change) => {
  const damaged = text.replaceAll(
    /(_gb": )([\d.]+)/g,
    (_, key: string, value: string) => key + change(value),
  );
  expect(damaged).not.toBe(text);
  const profile = profileFieldsSchema.parse(JSON.parse(damaged));
  const { profiles, counts } = validateProfiles([{ source: 'x.json', profile }], toleranceOf(0.05));
  expect(counts).toMatchObject({ compared: 0, rejected: 1 });
  expect(profiles[0]!.reasons.join()).toMatch(/_gb is (?:-|1e\+308)/);
});
