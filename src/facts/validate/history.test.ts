import { expect, test } from 'vitest';
import type { Validation, ValidationHistory } from '../../model/documents/validate.js';
import { trendOf } from './history.js';
import { names, readProfile } from './test-profiles.js';
import { toleranceOf, validateProfiles } from './validate.js';

const validated = (...from: string[]): Omit<Validation, 'session'> =>
  validateProfiles(
    from.map((name) => ({ source: `${name}.json`, profile: readProfile(name) })),
    toleranceOf(0.05),
  );
const saved = (id: string, { profiles }: Pick<Validation, 'profiles'>) => ({
  row: { id } as ValidationHistory['sessions'][number],
  profiles,
});

test('the trend is over the profiles that two sessions share, wherever their files are', () => {
  const [first, second, third] = names as [string, string, string];
  const both = validated(first, second);
  const one = validated(first);
  const error = Math.abs(one.profiles[0]!.total!.error_share!);
  const moved = one.profiles.map((profile) => ({ ...profile, source: 'elsewhere/x.json' }));
  expect(trendOf([saved('a', both), saved('b', validated(third)), saved('c', { profiles: moved })])).toEqual({
    before: 'a',
    now: 'c',
    profiles: 1,
    mean_absolute_share_before: error,
    mean_absolute_share_now: error,
  });
  expect(trendOf([saved('a', both), saved('b', validated(third))])).toBeNull();
  // A session that compared nothing has no errors.
  const nothing = both.profiles.map((profile) => ({ ...profile, total: null }));
  expect(trendOf([saved('a', one), saved('b', both), saved('c', { profiles: nothing })])).toMatchObject({
    before: 'a',
    now: 'b',
  });
});
