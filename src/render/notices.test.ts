import { describe, expect, it } from 'vitest';
import type { Issue } from '../model/document.js';
import { sentence } from '../vocabulary/sentence-template.js';
import { profileDocumentSchema } from '../model/documents/profile.js';
import { mergeIssues } from './notices.js';
import { bareProfile, hostileProfile, testProfile } from '../views/test-profile.js';

describe('test profile', () => {
  it('matches the schema and its sums', () => {
    for (const made of [testProfile(), bareProfile(), hostileProfile()]) profileDocumentSchema.parse(made);
    for (const stage of testProfile().data.stages.slice(0, 2)) {
      const { breakdown } = stage;
      const classes = breakdown?.by_class.reduce((total, row) => total + row.ms, 0);
      expect(classes).toBeCloseTo(breakdown?.operators_ms ?? 0, 9);
    }
  });
});

describe('notices', () => {
  it('merge equal issues of several launches, with their number and the range of differing numbers', () => {
    const busy = (mean: number, peak: number): Issue => ({
      code: 'machine_not_idle',
      severity: 'warning',
      ...sentence`other processes used ${mean} of ${2} cores (peak ${peak}).`,
    });
    const otherIssue: Issue = { code: 'cpu_steal', severity: 'warning', text: 'steal 3.5 %' };
    expect(mergeIssues([busy(1.05, 1.12), otherIssue, busy(0.98, 10.2), busy(1.01, 1.12)])).toEqual([
      {
        code: 'machine_not_idle',
        severity: 'warning',
        text: 'other processes used 1 to 1.1 of 2 cores (peak 1.1 to 10.2).',
        count: 3,
      },
      otherIssue,
    ]);
  });

  it('stay separate if they differ in a name, or in numbers that are not arguments (old archives)', () => {
    const issueOf = (scope: string, count: number): Issue => ({
      code: 'orphans',
      severity: 'info',
      count,
      ...sentence`${scope}: ${count} kernels have no API call.`,
    });
    const old = (count: number): Issue => ({
      code: 'ranges_unclosed',
      severity: 'info',
      text: `${count} ranges`,
      count,
    });
    expect(mergeIssues([issueOf('gpu0', 3), issueOf('gpu1', 4), issueOf('gpu0', 7), old(2), old(3)])).toEqual(
      [
        { code: 'orphans', severity: 'info', text: 'gpu0: 3 to 7 kernels have no API call.' },
        { code: 'orphans', severity: 'info', text: 'gpu1: 4 kernels have no API call.' },
        old(2),
        old(3),
      ],
    );
  });

  it('merge over severities, with the highest', () => {
    const late = (count: number, severity: Issue['severity']): Issue => ({
      code: 'late_samples',
      severity,
      count,
      ...sentence`Missed host samples: ${count}.`,
    });
    expect(mergeIssues([late(64, 'info'), late(136, 'warning')])).toEqual([
      { code: 'late_samples', severity: 'warning', text: 'Missed host samples: 64 to 136.' },
    ]);
  });

  it('of a launch merge without templates, too (old archives)', () => {
    const busy = (mean: string, peak: string): Issue => ({
      code: 'machine_not_idle',
      severity: 'warning',
      text: `other processes used ${mean} of 64 cores (peak ${peak}).`,
    });
    const late = (count: number, share: string): Issue => ({
      code: 'late_samples',
      severity: 'info',
      text: `${count} samples (${share}) were missed.`,
      count,
    });
    expect(
      mergeIssues([busy('2.8', '11.5'), late(13, '6.2 %'), busy('3.6', '9.5'), late(2, '0.4 %')]),
    ).toEqual([
      {
        code: 'machine_not_idle',
        severity: 'warning',
        text: 'other processes used 2.8 to 3.6 of 64 cores (peak 9.5 to 11.5).',
        count: 2,
      },
      { code: 'late_samples', severity: 'info', text: '2 to 13 samples (0.4 to 6.2 %) were missed.' },
    ]);
  });
});
