import { renameSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { InferscopeError } from '../model/errors.js';
import type { ManifestData } from '../model/manifest.js';
import { deleteSession } from './delete.js';
import { noteSession, renameSession, tagSession } from './edit.js';
import { sessionId, slugOf } from './id.js';
import { listSessions } from './list.js';
import { selectSession, usableSessions, withRows } from './select.js';
import { asidePath } from './temporary-folder.js';
import { testHome } from './test-folder.js';
import { saveSession } from './test-session.js';

test.each([
  ['Llama 24M (f32)', 'llama-24m-f32'],
  ['../../etc/passwd', 'etc-passwd'],
  ['Größe Ünïcode', 'gro-e-unicode'],
  ['', 'session'],
  ['模型', 'session'],
  ['a'.repeat(100), 'a'.repeat(24)],
])('slug of %j', (label, slug) => {
  expect(slugOf(label)).toBe(slug);
});

test('ids sort by time', () => {
  const idAt = (iso: string) => sessionId(new Date(iso), 'x');
  const ids = [idAt('2026-09-30T23:59:59Z'), idAt('2026-10-01T00:00:00Z'), idAt('2027-01-01T00:00:00.999Z')];
  expect([...ids].sort()).toEqual(ids);
  expect(ids[2]).toBe('20270101-000000-x');
  expect(sessionId(new Date('2026-11-20T22:15:03Z'), 'llama-24m', 2)).toBe('20261120-221503-llama-24m-2');
});

test('selects by id, unique prefix, name, @last and @last~n; otherwise suggests a near match or how to list sessions', async () => {
  const home = testHome();
  expect(() => selectSession('@last', home)).toThrow(
    expect.objectContaining({ code: 'E_SESSION_NOT_FOUND' }),
  );
  const make = (day: number, label: string) =>
    saveSession(home, { label, createdAt: new Date(Date.UTC(2026, 10, day)) });
  const first = await make(1, 'llama');
  const second = await make(2, 'qwen');
  const third = await make(2, 'qwen');
  await renameSession(selectSession('20261101', home), 'llm-b1', home);

  expect(selectSession(first.id, home)).toEqual(first);
  expect(selectSession('20261101', home).id).toBe(first.id);
  expect(selectSession('llm-b1', home).id).toBe(first.id);
  // A complete id is not ambiguous even if another one starts with it.
  expect(selectSession(second.id, home).id).toBe(second.id);
  expect(selectSession('@last', home).id).toBe(third.id);
  expect(selectSession('@last~2', home).id).toBe(first.id);

  const failure = (selector: string) => {
    try {
      return selectSession(selector, home);
    } catch (error) {
      return error;
    }
  };
  expect(failure('20261102')).toMatchObject({
    code: 'E_SESSION_AMBIGUOUS',
    parts: { why: expect.stringContaining(`${second.id}, ${third.id}`) },
  });
  expect(failure('llm-b2')).toMatchObject({
    code: 'E_SESSION_NOT_FOUND',
    parts: { fix: expect.stringContaining('Did you mean llm-b1?') },
  });
  expect(failure('@last~3')).toMatchObject({ code: 'E_SESSION_NOT_FOUND' });
  expect(failure('')).toMatchObject({ code: 'E_SESSION_NOT_FOUND' });
  expect(failure('../sessions')).toMatchObject({ code: 'E_SESSION_NOT_FOUND' });
  expect(failure('@first')).toMatchObject({ code: 'E_USAGE' });
});

test('a name in two homes selects neither', async () => {
  const homes = [testHome(), testHome()];
  const ids = [];
  for (const [index, home] of homes.entries())
    ids.push((await saveSession(home, { name: 'before', label: `model ${index}` })).id);
  expect(() => selectSession('before', homes)).toThrow('"before" selects 2 sessions');
  try {
    selectSession('before', homes);
  } catch (error) {
    const { why, fix } = (error as InferscopeError).parts;
    expect(why).toMatch(/have this name\.$/);
    for (const id of ids) expect(why).toContain(id);
    expect(fix).toMatch(/^Type more of the id, for example/);
  }
});

test('@last of a command for one kind of session counts only that kind; a damaged session is not skipped', async () => {
  const home = testHome();
  const make = async (day: number, label: string, writtenMs: number) => {
    const session = await saveSession(home, { label, createdAt: new Date(Date.UTC(2026, 10, day)) });
    utimesSync(join(session.folder, 'session.json'), writtenMs, writtenMs);
    return session;
  };
  const first = await make(1, 'first', 1000);
  const second = await make(2, 'second', 2000);
  const validation = await make(3, 'validation', 3000);
  const stages = withRows('stages', 'kernels', 'stages');
  const usable = {
    ...stages,
    matches: (manifest: ManifestData) => stages.matches(manifest) && manifest.id !== validation.id,
  };
  expect(selectSession('@last', home).id).toBe(validation.id);
  expect(selectSession('@last', home, usable).id).toBe(second.id);
  expect(selectSession('@last~1', home, usable).id).toBe(first.id);
  expect(selectSession(validation.id, home, usable).id).toBe(validation.id);
  expect(usableSessions(usable, home).map(({ id }) => id)).toEqual([first.id, second.id]);
  expect(() => selectSession('@last', home, withRows('kernels', 'kernels'))).toThrow(
    expect.objectContaining({ code: 'E_SESSION_NOT_FOUND' }),
  );

  writeFileSync(join(validation.folder, 'session.json'), '{');
  expect(selectSession('@last', home, usable).id).toBe(validation.id);
  expect(usableSessions(usable, home)).toHaveLength(2);
});

test('@last is the session that was made or imported last, whenever it was measured', async () => {
  const home = testHome();
  const make = (day: number, label: string) =>
    saveSession(home, { label, createdAt: new Date(Date.UTC(2026, 10, day)) });
  const today = await make(20, 'today');
  const older = await make(2, 'older');
  // Session folders of the same millisecond would be ordered by id.
  const written = new Date(Date.now() + 5000);
  utimesSync(join(older.folder, 'session.json'), written, written);
  expect([selectSession('@last', home).id, selectSession('@last~1', home).id]).toEqual([older.id, today.id]);
  expect(listSessions(home).map(({ id }) => id)).toEqual([today.id, older.id]);
});

test('names are unique, tags are a set, notes have their time; a released name can be reused', async () => {
  const home = testHome();
  const firstSession = await saveSession(home, { label: 'one' });
  const two = await saveSession(home, { label: 'two' });
  await renameSession(firstSession, 'base', home);
  await renameSession(firstSession, 'base', home);
  await expect(renameSession(two, 'base', home)).rejects.toMatchObject({ code: 'E_SESSION_NAME' });
  await expect(renameSession(two, 'a@b', home)).rejects.toMatchObject({ code: 'E_SESSION_NAME' });
  await renameSession(firstSession, null, home);
  await renameSession(two, 'base', home);
  await tagSession(two, { add: ['h100', 'a', 'h100'], remove: [] });
  await tagSession(two, { add: [], remove: ['a'] });
  await expect(tagSession(two, { add: ['a b'], remove: [] })).rejects.toMatchObject({ code: 'E_USAGE' });
  await noteSession(two, 'fans at\nfull speed', new Date('2026-11-20T22:15:03Z'));
  const user = await noteSession(two, 'second');
  expect(user).toMatchObject({
    name: 'base',
    tags: ['h100'],
    notes: [{ at: '2026-11-20T22:15:03.000Z', text: 'fans at\nfull speed' }, { text: 'second' }],
  });
  expect(listSessions(home).map(({ id, name, tags }) => [id, name, tags])).toEqual([
    [firstSession.id, null, []],
    [two.id, 'base', ['h100']],
  ]);
});

test('a deleted session is gone; a session between the two renames of a swap is still found', async () => {
  const home = testHome();
  const firstSession = await saveSession(home, { label: 'one' });
  const two = await saveSession(home, { label: 'two' });
  await deleteSession(firstSession, home);
  expect(listSessions(home).map(({ id }) => id)).toEqual([two.id]);
  const aside = asidePath(home, 'swap', two.id);
  renameSync(join(home.sessions, two.id), aside);
  expect(selectSession(two.id, home)).toEqual({ id: two.id, folder: aside });
});
