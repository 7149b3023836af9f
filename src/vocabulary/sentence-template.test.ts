import { expect, test } from 'vitest';
import { withText } from '../model/sentence-template.js';
import { quantity, rangedText, sentence, sentenceKey } from './sentence-template.js';

test('a changed text, for example after redaction, loses its template', () => {
  const issue = { code: 'x', ...sentence`${'token hunter2'}: ${3} times` };
  expect(issue.text).toBe('token hunter2: 3 times');
  expect(withText(issue, issue.text)).toEqual(issue);
  expect(withText(issue, 'token [redacted]: 3 times')).toEqual({
    code: 'x',
    text: 'token [redacted]: 3 times',
  });
});

test('arguments and their ranges are formatted as numbers', () => {
  const busy = (share: number) => sentence`${'gpu0'} busy ${quantity(share, 'ratio')} of ${1234} samples`;
  expect(busy(0.7123).text).toBe('gpu0 busy 71 % of 1\u00a0234 samples');
  expect(sentenceKey(busy(0.7))).toBe(sentenceKey(busy(0.2)));
  expect(rangedText([busy(0.7), busy(0.2), busy(0.5)])).toBe('gpu0 busy 20 % to 70 % of 1\u00a0234 samples');
});
