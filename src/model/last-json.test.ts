import { expect, test } from 'vitest';
import { lastJson } from './last-json.js';

test.each([
  ['{"a": 1}\n', { a: 1 }],
  ['a package says hello\n\n[1]', [1]],
  ['Traceback', null],
  ['', null],
])('the last line of %j', (stdout, value) => {
  expect(lastJson(stdout)).toEqual(value);
});
