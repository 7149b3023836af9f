import { expect, test } from 'vitest';
import { document } from '../model/document.js';
import type { ValidationHistory } from '../model/documents/validate.js';
import { plainText } from '../render/value.js';
import { validateHistoryView } from './validate-history.js';

const lines = (trend: ValidationHistory['trend']): string =>
  validateHistoryView(document('validate-history', '1.1', { sessions: [], trend }))
    .lead.flatMap((block) => (block.type === 'text' ? [plainText(block.text)] : []))
    .join('\n')
    .replaceAll('\u00a0', ' ');

test('the trend names its sessions and the number of profiles, or says what it needs', () => {
  const shares = { mean_absolute_share_before: 0.02, mean_absolute_share_now: 0.01 };
  expect(lines({ before: 'a', now: 'b', profiles: 17, ...shares })).toBe(
    'Mean error of the total over the 17 profiles of both: 2.0 % in a, 1.0 % in b.',
  );
  expect(lines(null)).toMatch(/^A trend needs two sessions that compared the same profiles/);
});
