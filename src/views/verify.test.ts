import { describe, expect, test } from 'vitest';
import { document } from '../model/document.js';
import {
  type VerifyResult,
  verifyVersion,
  whatIfVersion,
  type WhatIfResult,
} from '../model/documents/explain.js';
import { figure, missing } from '../model/figure.js';
import { pageOfView } from '../render/html/view.js';
import { markdownView } from '../render/markdown.js';
import { testExplain } from './test-explain.js';
import { hostileText } from './test-profile.js';
import { verifyView } from './verify.js';
import { whatIfView } from './what-if.js';

const clientScript = '"use strict";';
const explain = testExplain();
const { session } = explain.data;

function verified(title = 'Launch-bound: the GPU is idle 91.5 %'): VerifyResult {
  const stage = {
    kind: 'decode' as const,
    point: null,
    before_ms: figure(5.88, 'ms', 'measured'),
    after_ms: figure(1.62, 'ms', 'measured'),
    graded_on: 'wall' as const,
    profiled: 'none' as const,
    graded_why: 'the wall time is known to ± 0.9 % before and ± 0.1 % after',
    sequences: null,
    achieved_ms: 4.26,
    bars: [
      { id: 'launch_overhead', before_ms: 1.81, after_ms: 0 },
      { id: 'roofline', before_ms: 0.22, after_ms: 0.22 },
    ],
  };
  const change = {
    finding: 'launch_bound:decode',
    stage: 'decode' as const,
    title,
    outcome: 'gone' as const,
    expected_ms: 4.04,
    low_ms: 3.43,
    high_ms: 4.25,
    achieved_ms: 4.26,
    achieved_error_ms: 0.21,
    error: -0.052,
    as_expected: true,
    text: 'Gone: 4.04 ms expected.',
  };
  const fresh = {
    ...change,
    finding: 'few_repeats',
    outcome: 'new' as const,
    title: 'Too few repeats',
    expected_ms: null,
    low_ms: null,
    high_ms: null,
    achieved_ms: null,
    achieved_error_ms: null,
    error: null,
    as_expected: null,
    text: 'New.',
  };
  return {
    before: session,
    after: { ...session, id: '20261121-000001-after', name: 'after' },
    stages: [stage],
    changes: [change, fresh],
    score: { graded: 1, as_expected: 1, median_absolute_error: 0.052 },
    sentences: [
      'Decode step: 5.88 ms before, 1.62 ms after (−72 %).',
      'The achieved gain is within the expected interval.',
    ],
  };
}

describe('explain --verify as a page', () => {
  const html = pageOfView(verifyView(document('verify', verifyVersion, verified()), explain), {
    clientScript,
  });
  const part = html.slice(html.indexOf('<section id="verify"'), html.indexOf('<section id="waterfall"'));

  test('shows expected next to achieved, with error, interval and score; waterfall and findings follow', () => {
    expect([...html.matchAll(/<section id="([\w-]+)"/g)].map(([, id]) => id)).toEqual([
      'verify',
      'waterfall',
      'findings',
    ]);
    for (const text of ['4.04', '3.43', '4.25', '4.26', '−5.2']) expect(part).toContain(text);
    // A bar that did not change is not listed.
    expect(part).toContain('<td class="">launch call</td>');
    expect(part).not.toContain('<code>roofline</code>');
  });

  test('the chart has one scale: 4.26 ms at 155 px (160 px less a margin of 5), 3.43 ms in proportion', () => {
    expect(part).toMatch(/<circle class="achieved" cx="155"/);
    expect(part).toContain(`x="${Math.round(10 * (5 + (3.43 / 4.26) * 150)) / 10}"`);
    // A change without an expected gain is not drawn.
    expect(part.match(/<svg/g)).toHaveLength(1);
  });

  test('a change without a gain is labeled so, and names are escaped', () => {
    const bad = document('verify', verifyVersion, verified(hostileText));
    const page = pageOfView(verifyView(bad, explain), { clientScript });
    expect(page).not.toContain('<img src=x');
    expect(part).toContain('no expected gain');
  });

  test('the Markdown has the same figures', () => {
    const text = markdownView(verifyView(document('verify', verifyVersion, verified()), explain));
    expect(text).toContain('| gone | 4.0 ms (3.4 to 4.3 ms) | 4.26 ms ± 0.21 | −5.2 % |');
    const other = verified();
    Object.assign(other.changes[0]!, { as_expected: false, achieved_ms: 2.1 });
    expect(markdownView(verifyView(document('verify', verifyVersion, other), explain))).toContain(
      '| 2.10 ms ± 0.21, below |',
    );
    // The digits of a gain are those of its own error, not of a wide expected interval.
    Object.assign(other.changes[0]!, { high_ms: 170, achieved_ms: -0.68, achieved_error_ms: 0.03 });
    expect(markdownView(verifyView(document('verify', verifyVersion, other), explain))).toContain(
      '−0.680 ms ± 0.030, below',
    );
    expect(text).toContain('The achieved gain is within the expected interval.');
    // The text of a graded change is not repeated below its row.
    expect(text).not.toContain('4.04 ms expected.');
    expect(text).toContain('2. New.');
  });

  test('findings that share the gain of a stage say so', () => {
    const one = verified();
    const two: VerifyResult = { ...one, changes: [one.changes[0]!, one.changes[0]!] };
    const [alone, shared] = [one, two].map((result) =>
      markdownView(verifyView(document('verify', verifyVersion, result), explain)),
    );
    expect(shared).toContain('1, 2. Shares of the gain per decode step, 4.26 ms, in proportion to');
    expect(alone).not.toContain('Shares of');
  });
});

test('explain --what-if as a page: summary, changed bars and assumptions; the reason if a stage cannot be predicted', () => {
  const stages: WhatIfResult['stages'] = [
    {
      kind: 'decode',
      point: null,
      before_ms: figure(5.88, 'ms', 'measured'),
      after_ms: figure(1.84, 'ms', 'bars', { ci95: [1.6, 2.4] }),
      per_token_before_ms: null,
      per_token_after_ms: null,
      per_sequence_before_ms: null,
      per_sequence_after_ms: null,
      bars: [
        { id: 'launch_overhead', before_ms: 1.81, after_ms: 0, explanation: 'one launch a stage' },
        { id: 'synchronization', before_ms: 0, after_ms: 0.001, explanation: 'too small to show' },
      ],
      assumptions: ['every kernel is captured'],
      unchanged: [{ change: 'no-sync', why: 'the host does not wait for the device inside the stage' }],
    },
    {
      kind: 'prefill',
      point: null,
      before_ms: figure(9, 'ms', 'measured'),
      after_ms: missing('no_stage', 'nothing marks it'),
      per_token_before_ms: null,
      per_token_after_ms: null,
      per_sequence_before_ms: null,
      per_sequence_after_ms: null,
      bars: [],
      assumptions: [],
      unchanged: [],
    },
  ];
  const whatIf = document('what-if', whatIfVersion, { session, change: 'cudagraph', stages });
  const html = pageOfView(whatIfView(whatIf, explain), { clientScript });
  for (const text of [
    'What if: cudagraph',
    '3.2× as fast',
    'one launch a stage',
    'Assumed: every kernel is captured.',
    'no-sync changes nothing: the host does not wait for the device inside the stage.',
    'nothing marks it',
  ])
    expect(html).toContain(text);
  expect(html).not.toContain('synchronization: too small to show');
  expect(html.indexOf('id="what-if"')).toBeLessThan(html.indexOf('<section id="waterfall"'));
});
