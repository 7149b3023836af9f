import { expect, test } from 'vitest';
import type { KeyedSession } from './homes.js';
import { sessionsTable } from './sessions-page.js';

const session = (model: Record<string, unknown> | null): KeyedSession =>
  ({
    key: 'a',
    home: null,
    listed: { id: 'a', name: null, title: null, tags: [], subjects: [], broken: null, headline: '3 ms' },
    program: { command: [], hardware: {}, workload: { model, engine: { name: 'torch', options: {} } } },
    figure: null,
  }) as unknown as KeyedSession;

/** A narrow page hides empty cells with their labels. */
test('the cell of a model is empty if the session names none', () => {
  expect(sessionsTable([session(null)])).toContain('<td data-head="Model" class="fits"></td>');
  expect(sessionsTable([session({ name: null, dtype: 'unknown' })])).toContain(
    '<td data-head="Model" class="fits"></td>',
  );
  expect(sessionsTable([session({ name: 'llama', dtype: 'unknown' })])).toMatch(
    /<td data-head="Model" class="fits"><span>llama /,
  );
});

test('a session that did not complete says so', () => {
  const complete = session(null);
  const failed = { ...complete, listed: { ...complete.listed, status: 'failed' } };
  expect(sessionsTable([failed])).toContain('[failed]');
  expect(sessionsTable([{ ...complete, listed: { ...complete.listed, status: 'complete' } }])).not.toContain(
    '[',
  );
});
