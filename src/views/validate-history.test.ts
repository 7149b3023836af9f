import { expect, test } from 'vitest';
import { document } from '../model/document.js';
import type { ValidationHistory } from '../model/documents/validate.js';
import { plainText } from '../render/value.js';
import { validateHistoryView } from './validate-history.js';

type Saved = ValidationHistory['sessions'][number];

const lines = (...shares: (number | null)[]): string => {
  const sessions = shares.map((share, index) => {
    const total = { mean_share: share, mean_absolute_share: share, worst_share: share };
    const id = String(index);
    return { id, started_at: '', counts: { compared: 1 }, total, components: [], result: 'passed' };
  });
  const view = validateHistoryView(
    document('validate-history', '1.0', { sessions: sessions as unknown as Saved[] }),
  );
  return view.lead
    .flatMap((block) => (block.type === 'text' ? [plainText(block.text)] : []))
    .join('\n')
    .replaceAll('\u00a0', ' ');
};

test('the trend is between the last two sessions that compared something', () => {
  expect(lines(0.02, 0.01, null)).toBe('Mean error of the total: 2.0 % before, 1.0 % now.');
  expect(lines(0.02, null)).toMatch(/^A trend needs two sessions/);
});
