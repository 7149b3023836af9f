import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseQuestion } from './parsed-question.js';
import { topicsOf } from './topics.js';

test('finds the topic of at least four fifths of 120 questions that no phrase was written for', () => {
  const path = join(import.meta.dirname, '../../../test/fixtures/questions/held-out.jsonl');
  const questions = readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { q: string; topic: string });
  const wrong = questions.filter(({ q, topic }) => {
    const question = parseQuestion(q);
    const [first] = topicsOf(question, { batchSize: 4, contextLen: 560, gpus: question.gpus });
    return (first?.id ?? 'none') !== topic;
  });
  expect(questions).toHaveLength(120);
  expect(wrong.length / questions.length).toBeLessThanOrEqual(0.2);
});
