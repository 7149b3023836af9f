import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { importSession } from './archive-import.js';
import { createSession } from './create.js';
import { saveHeadline, readHeadline } from './headline.js';
import { listedPrograms, type ListedSession, listSessions } from './list.js';
import { openSession } from './open.js';
import { testHome } from './test-folder.js';
import { saveSession, summary } from './test-session.js';

test('the list shows the headline of the last analysis, but not one of another state or a damaged one', async () => {
  const home = testHome();
  const { id } = await saveSession(home, { label: 'one' });
  const session = await openSession(id, home);
  const headlineShown = () => {
    const [{ headline, headline_why }] = listSessions(home) as [ListedSession];
    return headline ?? headline_why;
  };
  expect(headlineShown()).toBe('not_analyzed');
  saveHeadline(session, null);
  expect(headlineShown()).toBe('no_time');
  saveHeadline(session, {
    text: 'decode 13.1 ms/step, 2.1x roofline',
    figure: { name: 'decode', value: 13.1, unit: 'ms' },
  });
  expect(headlineShown()).toBe('decode 13.1 ms/step, 2.1x roofline');
  expect(readHeadline(session.folder, 'f'.repeat(64))).toBeUndefined();
  const path = join(session.folder, 'derived', 'headline.json');
  expect(listedPrograms(home)[0]!.figure).toEqual({ name: 'decode', value: 13.1, unit: 'ms' });
  for (const damaged of [
    '{"session_sha256":',
    JSON.stringify({ session_sha256: session.sha256, headline: { text: 'decode', figure: { value: null } } }),
    JSON.stringify({ session_sha256: session.sha256, headline: 'decode' }),
    JSON.stringify({ session_sha256: session.sha256 }),
  ]) {
    writeFileSync(path, damaged);
    expect(headlineShown(), damaged).toBe('not_analyzed');
  }
  rmSync(path);
  expect(headlineShown()).toBe('not_analyzed');
});

test('recordings without steps have no headline time', async () => {
  const home = testHome();
  await (await createSession({ label: 'watched', kind: 'monitor', home })).finish(summary);
  expect(listSessions(home)).toMatchObject([{ headline: null, headline_why: 'no_time' }]);
});

test('the list shows the headline of steps that a probe timed, without a timeline', async () => {
  const home = testHome();
  await importSession('test/fixtures/sglang-h200/none.tgz', home);
  expect(listSessions(home)).toMatchObject([
    { subjects: ['steps', 'telemetry'], headline_why: 'not_analyzed' },
  ]);
});
