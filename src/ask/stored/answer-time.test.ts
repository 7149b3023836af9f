import { expect, test } from 'vitest';
import type { StageWaterfall } from '../../model/documents/explain.js';
import { figure, missing } from '../../model/figure.js';
import { profilerAdds, spreadOfTimes, tokensPerSecond } from './answer-time.js';
import type { StoredFacts } from './stored-facts.js';

/** A question about decode, with a stage of these times. */
function factsOf(times: Partial<StageWaterfall>): StoredFacts {
  const stage = {
    kind: 'decode',
    source: 'trace',
    point: 'b2-128+16',
    instances: 20,
    measured_ms: figure(9, 'ms', 'measured'),
    clean_ms: missing('no_clean_execution', 'the session has no execution without a profiler'),
    ...times,
  };
  return {
    explained: { stages: [stage], findings: [], without_waterfall: [] },
    question: { stages: ['decode'] },
    session: { manifest: { workload: null } },
  } as unknown as StoredFacts;
}

test('an interval over launches counts launches, not repeats', () => {
  const clean_ms = figure(10, 'ms', 'stages', {
    n: 20,
    sd: 0.3,
    ci95: [9.5, 10.5],
    ci95_over: { unit: 'launches', n: 5 },
  });
  const text = spreadOfTimes(factsOf({ clean_ms })).direct!.text;
  expect(text).toContain('(95 %, n = 5 launches): the interval of its mean is ± 5.0 %, sd 0.300 ms.');
  const overRepeats = figure(10, 'ms', 'stages', { ci95: [9.5, 10.5] });
  expect(spreadOfTimes(factsOf({ clean_ms: overRepeats })).direct!.text).toContain('(95 %, n = 20)');
});

test('a profiler that makes a step no longer adds no measurable time', () => {
  const adds = (clean: number) =>
    profilerAdds(factsOf({ clean_ms: figure(clean, 'ms', 'stages') }))!.direct!.text;
  expect(adds(9.3)).toMatch(
    /^The profiler adds no measurable time to .*: 9\.00 ms under it, 9\.30 ms without\.$/,
  );
  expect(adds(6)).toMatch(/^The profiler adds 3\.00 ms to .* \(50 % more\)\.$/);
});

test('a stage without a time is reported with the reason', () => {
  const facts = factsOf({ measured_ms: missing('not_profiled', 'the run stopped early') });
  for (const answer of [spreadOfTimes(facts), tokensPerSecond(facts)])
    expect(answer.notKnown!.why).toMatch(
      /^The time of a decode step at .* is not known: the run stopped early\.$/,
    );
});
