import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { figure, missing } from '../model/figure.js';
import { diagnosisTexts } from './diagnosis.js';
import { profileReport } from './html/profile.js';
import { profileSummary } from './terminal/profile.js';
import { hostileText, testProfile } from './test-profile.js';

const share = (value: number) => figure(value, 'ratio', 'test');
const made = testProfile();
made.data.diagnosis = [
  {
    id: 'verdict',
    stage: 'decode',
    cost: 'kernels',
    share: share(0.9),
    shares: {
      kernels: share(0.9),
      scheduling: share(0.08),
      allocation: missing('not_in_trace', 'the trace has no allocation'),
      host: share(0.02),
    },
    text: 'In decode kernels cost most: kernels 90 %.',
    decision: 'the model decides',
  },
  {
    id: 'runtime_call',
    stage: 'decode',
    cost: 'scheduling',
    share: share(0.08),
    text: `A call takes 8.0 % of a decode step (0.573 ms). ${hostileText}`,
    decision: 'the interface decides',
  },
];

describe('what costs', () => {
  it('stands in the terminal within 80 columns, decisions beside the observations', () => {
    const text = stripVTControlCharacters(profileSummary(made, { reportPath: null, width: 80 }));
    const [, part = ''] = text.split('What costs');
    expect(part.replaceAll(/\s+/g, ' ')).toContain('In decode kernels cost most: kernels 90 %. A call');
    expect(part).toContain('The interface decides.');
    for (const line of text.split('\n')) expect([...line].length, line).toBeLessThanOrEqual(80);
    expect(diagnosisTexts(made.data)[1]!.text).toContain('(0.573\u00a0ms)');
  });

  it('stands in the report with every share, a missing one by its reason', () => {
    const html = profileReport(made, { clientScript: '"use strict";' });
    const section = html.split('<section id="costs"')[1]!.split('</section>')[0]!;
    expect(section).toContain('The model decides.');
    expect(section).toContain('decode allocation: the trace has no allocation');
    expect(section.replaceAll(/<[^>]+>/g, '').replaceAll('&nbsp;', '\u00a0')).toContain('8.0\u00a0%');
    expect(section).not.toContain('<img');
  });

  it('a document from before there was a diagnosis is shown without one', () => {
    const older = testProfile();
    expect(profileSummary(older, { reportPath: null, width: 80 })).not.toContain('What costs');
    expect(profileReport(older, { clientScript: '' })).toContain('There is no diagnosis.');
  });
});
