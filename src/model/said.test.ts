import { expect, test } from 'vitest';
import { retold, said } from './said.js';

test('a text that was changed, as by redaction, loses what it was made of', () => {
  const issue = { code: 'x', ...said`${'token hunter2'}: ${3} times` };
  expect(issue.text).toBe('token hunter2: 3 times');
  expect(retold(issue, issue.text)).toEqual(issue);
  expect(retold(issue, 'token [redacted]: 3 times')).toEqual({
    code: 'x',
    text: 'token [redacted]: 3 times',
  });
});
