import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { document } from '../model/document.js';
import { type AnalyzeResult, analyzeDocumentSchema } from '../model/documents/analyze.js';
import { figure } from '../model/figure.js';
import { terminalView } from '../render/terminal/view.js';
import { analyzeView } from './analyze.js';

const query = (id: string, input: string | null) => ({ id, tool: 'sql', input, rows: 1, error: null });

const result: AnalyzeResult = {
  session: { id: 's1', name: 'tiny', title: 'tiny.sqlite' },
  question: 'why?',
  answered_by: 'model',
  model: 'some-model',
  answer: [
    'The **host** is the limit [q1].',
    '',
    '- launches take most of the step, which the device spends idle while it waits for the next kernel [q3]',
    '',
    '```sql',
    'SELECT 1;',
    '```',
  ].join('\n'),
  claims: [{ text: '3 ms', verified: false, queries: [], derivation: null }],
  unverified: 1,
  queries: [
    { ...query('q0', null), tool: 'findings' },
    query('q1', `WITH a AS (SELECT 1) ${'x'.repeat(200)} SELECT n FROM a`),
    query('q2', 'SELECT 2'),
    query('q3', 'SELECT 3'),
  ],
  next_capture: null,
  usage: { steps: 2, input_tokens: 10, output_tokens: 5, cost_usd: figure(0.123, 'USD', 'prices') },
};

test('shows an answer with its lists and code, the cited queries, and its cost', () => {
  const analyzeDocument = document('analyze', '1.0', result);
  expect(analyzeDocumentSchema.parse(analyzeDocument)).toEqual(analyzeDocument);
  const text = stripVTControlCharacters(terminalView(analyzeView(analyzeDocument), { width: 60 }));
  expect(text.split('\n').slice(2)).toEqual([
    '  The host is the limit [q1].',
    '',
    '  - launches take most of the step, which the device spends',
    '    idle while it waits for the next kernel [q3]',
    '',
    '    SELECT 1;',
    '',
    '  [q1]  a long query, printed with --sql 1',
    '  [q3]  SELECT 3',
    '',
    '  0 of 1 numbers verified, 1 marked (unverified) ·',
    '  some-model, 2 replies, 10 in + 5 out tokens · $0.12',
  ]);
});
