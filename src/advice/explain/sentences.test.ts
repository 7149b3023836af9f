import { expect, test } from 'vitest';
import { testExplain } from '../../views/test-explain.js';
import { summarySentences } from './sentences.js';

test('the summary says that nothing was found only if a rule had data to judge', () => {
  const { stages } = testExplain().data;
  const sentencesOf = (hasJudgedRules: boolean) =>
    summarySentences(stages, [], [], { hasJudgedRules }).sentences;
  const judged = sentencesOf(true);
  expect(judged.at(-1)).toBe('The rules found nothing significant to change.');
  expect(sentencesOf(false)).toEqual(judged.slice(0, -1));
});
