import { describe, expect, it } from 'vitest';
import type { Issue } from '../model/document.js';
import { profileDocumentSchema } from '../model/documents/profile.js';
import { collapsed } from './notices.js';
import { bareProfile, hostileProfile, testProfile } from './test-profile.js';

describe('test profile', () => {
  it('is what the schema says and adds up', () => {
    for (const made of [testProfile(), bareProfile(), hostileProfile()]) profileDocumentSchema.parse(made);
    for (const stage of testProfile().data.stages.slice(0, 2)) {
      const { breakdown } = stage;
      const classes = breakdown?.by_class.reduce((total, row) => total + row.ms, 0);
      expect(classes).toBeCloseTo(breakdown?.operators_ms ?? 0, 9);
    }
  });
});

describe('notices', () => {
  it('say the same of several launches once, with their number and the range of what differs', () => {
    const busy = (mean: string, peak: string): Issue => ({
      code: 'machine_not_idle',
      severity: 'warning',
      text: `other processes used ${mean} of 2 cores (peak ${peak}).`,
    });
    const other: Issue = { code: 'cpu_steal', severity: 'warning', text: 'steal 3.5 %' };
    expect(collapsed([busy('1.05', '1.12'), other, busy('0.98', '10.2'), busy('1.01', '1.12')])).toEqual([
      { ...busy('0.98 to 1.05', '1.12 to 10.2'), count: 3 },
      other,
    ]);
  });
});
