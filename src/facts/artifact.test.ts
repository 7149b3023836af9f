import { expect, test } from 'vitest';
import { testHome } from '../session/test-folder.js';
import { analyzeServing } from './serving/serving.js';
import { sessionOf } from './test-session.js';

test('a plan in the form of another version is named with its field, not reported as a bug', async () => {
  const session = await sessionOf(
    testHome(),
    {},
    { kind: 'bench', artifacts: { 'load-plan': { target: 1 } } },
  );
  await expect(analyzeServing(session)).rejects.toMatchObject({
    code: 'E_SESSION_CORRUPT',
    parts: {
      what: `session ${session.id} has an artifact load-plan that this version cannot read`,
      why: expect.stringMatching(/^target: /),
    },
  });
});
