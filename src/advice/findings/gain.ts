import type { FoundDraft } from './rule.js';

type Gain = NonNullable<FoundDraft['gain']>;

/** Part of the expected gain that is its low end, where a rule has no better bound. */
const lowShare = 0.7;

/**
 * What a change that removes `expected_ms` of a stage of `wall_ms` brings, both of a mean instance.
 * @param bounds ends and the word of --what-if where the rule knows them; the high end is the expected gain
 */
export const gainOf = (
  wall_ms: number,
  expected_ms: number,
  assumption: string,
  bounds: Partial<Pick<Gain, 'low_ms' | 'high_ms' | 'what_if'>> = {},
): Gain => ({
  expected_ms,
  low_ms: lowShare * expected_ms,
  high_ms: expected_ms,
  after_ms: wall_ms - expected_ms,
  assumption,
  what_if: null,
  ...bounds,
});

/** What the host needs to launch a stage after a change that removes some of its launches, ms. */
export const launchingWithout = (host_ms: number, launches: number, removed: number): number =>
  host_ms * Math.max(0, 1 - removed / Math.max(1, launches));
