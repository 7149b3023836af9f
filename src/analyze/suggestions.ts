import type { Suggestion } from '../model/documents/profile.js';
import { expectedGain } from './what-if/expected-gains.js';
import type { StageState } from './what-if/stage-state.js';
import { streamFormat, streamRate } from './what-if/weight-streams.js';

/** A gain smaller than this share of the step is not worth a line. */
const worthwhile = 0.1;

/**
 * Changes to the decode step whose gain this machine's measured weight streams let one expect; times and intervals are
 * those of `explain --what-if`.
 * @param decode the step as it was measured; null without one
 */
export function suggestions(decode: StageState | null): Suggestion[] {
  if (!decode || 'reason' in decode.needs) return [];
  const { weightStreams } = decode;
  const { model, shape } = decode.needs;
  const batch = shape.batchSize;
  const format = streamFormat(model.storage);
  const larger = weightStreams
    .filter((stream) => stream.format === format && stream.batch_size > batch)
    .map((stream) => stream.batch_size)
    .toSorted((x, y) => x - y)[0];
  const int4 = format === 'float32' && streamRate(weightStreams, 'int4', batch) !== null;
  const changes = [
    ...(int4 ? [{ change: 'int4 weights', flag: '--dtype int4', what_if: 'int4' }] : []),
    ...(larger === undefined
      ? []
      : [{ change: `batch ${larger}`, flag: `--batch-size ${larger}`, what_if: `batch-size=${larger}` }]),
  ];
  return changes.flatMap((change): Suggestion[] => {
    const gain = expectedGain(decode, change.what_if);
    if (gain === null || gain.expected_ms < worthwhile * gain.before_ms) return [];
    return [
      {
        stage: 'decode',
        ...change,
        before_ms: gain.before_ms,
        expected_ms: gain.after_ms,
        low_ms: gain.before_ms - gain.high_ms,
        high_ms: gain.before_ms - gain.low_ms,
        per: gain.per === 'token' ? 'token' : 'instance',
        assumption: gain.assumption,
      },
    ];
  });
}
