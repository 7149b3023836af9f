import type { Pace } from './job-causes.js';
import type { FoundDraft } from './rule.js';

type Gain = NonNullable<FoundDraft['gain']>;

/** Low end of a gain as a share of the expected gain, where a rule has no better bound. */
const lowShare = 0.7;

/**
 * Gain of a change that removes `expected_ms` of a stage that takes `wall_ms` (ms per mean instance).
 * @param bounds low and high end and the `--what-if` change, where the rule knows them; the high end defaults to `expected_ms`
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

/** What a finding says of the cause that sets the pace after its change, if there is one. */
export const pacing = (pace: Pace | null, lost_ms: number): { advice: string; paced_by?: string } =>
  pace === null
    ? { advice: '' }
    : {
        advice: ` Then ${pace.text}.`,
        ...(pace.ms < 0.5 * lost_ms && { paced_by: pace.rule }),
      };

/** Host time to launch a stage after a change that removes some of its launches, ms; proportional to the launches left. */
export const launchingWithout = (host_ms: number, launches: number, removed: number): number =>
  host_ms * Math.max(0, 1 - removed / Math.max(1, launches));
