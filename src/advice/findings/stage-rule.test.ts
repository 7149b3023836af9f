import { expect, test } from 'vitest';
import { outcomeOf } from './stage-rule.js';

test('reasons name their stage; without marked stages it is the whole capture', () => {
  expect(outcomeOf([['decode', 'no copies']], '')).toMatchObject({ why: 'decode: no copies.' });
  expect(outcomeOf([['outside', 'no copies']], '')).toMatchObject({ why: 'whole capture: no copies.' });
});
