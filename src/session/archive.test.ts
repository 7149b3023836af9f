import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { Header } from 'tar';
import { expect, test } from 'vitest';
import { addCapture } from './capture.js';
import { exportSession } from './archive-export.js';
import { importSession } from './archive-import.js';
import { noteSession, renameSession } from './edit.js';
import { openSession } from './open.js';
import { testHome, testFolder } from './test-folder.js';
import { saveSession } from './test-session.js';

const scratch = testFolder();
const home = testHome();
const saved = await saveSession(home, { name: 'base' });
mkdirSync(join(saved.folder, 'derived'));
writeFileSync(join(saved.folder, 'derived/report.html'), '<p>');
const archive = join(scratch, 'session.tar.gz');
await exportSession(saved, { output: archive });

interface Entry {
  path: string;
  content?: Buffer;
  type?: 'File' | 'SymbolicLink' | 'Link' | 'Directory' | 'CharacterDevice';
  linkpath?: string;
  /** Size in the header, if it differs from the content. */
  size?: number;
}

/** Writes a tar header by header, so that it can contain entries that no tool writes. */
function writeTar(name: string, entries: Entry[]): string {
  const blocks = entries.flatMap(({ path, content = Buffer.alloc(0), type = 'File', linkpath, size }) => {
    const header = new Header({
      path,
      type,
      mode: 0o644,
      size: size ?? content.length,
      ...(linkpath ? { linkpath } : {}),
    });
    header.encode();
    return [header.block as Buffer, content, Buffer.alloc((512 - (content.length % 512)) % 512)];
  });
  const file = join(scratch, name);
  writeFileSync(file, gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)])));
  return file;
}

/** The valid files of the saved session, the manifest first. */
function validEntries(): Entry[] {
  const files = [
    'session.json',
    'session.json.sha256',
    'tables/ops/c0.parquet',
    'tables/stages/c0.parquet',
    'artifacts/c0/record.jsonl',
  ];
  return files.map((path) => ({
    path: `${saved.id}/${path}`,
    content: readFileSync(join(saved.folder, path)),
  }));
}

/** Imports into an empty home: must fail with this code and leave nothing. */
async function expectRefused(file: string, code = 'E_SESSION_ARCHIVE', text = /./): Promise<void> {
  const empty = testHome();
  const failure = await importSession(file, empty).catch((error: unknown) => error);
  expect(failure).toMatchObject({ code });
  const { what, why } = (failure as { parts: { what: string; why: string } }).parts;
  expect(`${what} ${why}`).toMatch(text);
  expect(existsSync(empty.sessions) ? readdirSync(empty.sessions) : []).toEqual([]);
}

test('an export is a plain tar.gz that tar can read, and its import is identical byte for byte', async () => {
  expect(execFileSync('tar', ['-tzf', archive], { encoding: 'utf8' }).trim().split('\n')).toEqual(
    [
      'session.json',
      'session.json.sha256',
      'user.json',
      'tables/ops/c0.parquet',
      'tables/stages/c0.parquet',
      'artifacts/c0/record.jsonl',
    ].map((path) => `${saved.id}/${path}`),
  );
  const otherHome = testHome();
  expect(await importSession(archive, otherHome)).toEqual({
    id: saved.id,
    outcome: 'imported',
    droppedName: null,
  });
  const session = await openSession('base', otherHome);
  expect(readFileSync(join(session.folder, 'tables/ops/c0.parquet'))).toEqual(
    readFileSync(join(saved.folder, 'tables/ops/c0.parquet')),
  );
  expect(existsSync(join(session.folder, 'derived'))).toBe(false);
  expect(await importSession(archive, otherHome)).toMatchObject({ outcome: 'already_here' });
});

test('reports are included on request; an existing file is replaced only with the option', async () => {
  const output = join(scratch, 'derived.tar.gz');
  await exportSession(saved, { output, derived: true });
  await expect(exportSession(saved, { output })).rejects.toMatchObject({ code: 'E_USAGE' });
  await exportSession(saved, { output, derived: true, overwrite: true });
  const otherHome = testHome();
  await importSession(output, otherHome);
  expect(readFileSync(join(otherHome.sessions, saved.id, 'derived/report.html'), 'utf8')).toBe('<p>');
  expect(readdirSync(scratch).filter((name) => name.endsWith('.part'))).toEqual([]);
});

test('raw reports are left out unless requested, and the session then counts as the same', async () => {
  const home = testHome();
  const { id } = await saveSession(home, { label: 'raw' });
  const writer = await addCapture(await openSession(id, home), home);
  const secret = Buffer.from('HF_TOKEN=hf_planted0123456789');
  await writer.addArtifact(secret, { kind: 'nsys-rep', captureId: 'nsys', name: 'run.nsys-rep' });
  await writer.finish({ executions: [], captures: [] });
  const session = { id, folder: join(home.sessions, id) };

  const without = join(scratch, 'without-raw.tar.gz');
  expect(await exportSession(session, { output: without })).toMatchObject({
    raw_reports: ['artifacts/nsys/run.nsys-rep'],
    files: 5,
  });
  expect(execFileSync('tar', ['-xzOf', without]).includes('hf_planted')).toBe(false);
  const otherHome = testHome();
  expect(await importSession(without, otherHome)).toMatchObject({ outcome: 'imported' });
  const imported = await openSession(id, otherHome);
  expect(imported.manifest.artifacts.map(({ kind }) => kind)).toEqual(['record']);
  expect(imported.issues.map(({ code }) => code)).toContain('raw_reports_left_out');
  expect(await importSession(without, home)).toMatchObject({ outcome: 'already_here' });

  const withRaw = join(scratch, 'with-raw.tar.gz');
  await exportSession(session, { output: withRaw, raw: true });
  expect(execFileSync('tar', ['-xzOf', withRaw]).includes('hf_planted')).toBe(true);
});

test('imports an archive packed with GNU tar', async () => {
  expect(await importSession(writeTar('honest.tar.gz', validEntries()), testHome())).toMatchObject({
    outcome: 'imported',
  });
});

test('does not export a damaged session', async () => {
  const otherHome = testHome();
  const broken = await saveSession(otherHome);
  writeFileSync(join(broken.folder, 'artifacts/c0/record.jsonl'), '{"v":2}\n');
  const output = join(scratch, 'broken.tar.gz');
  await expect(exportSession(broken, { output })).rejects.toMatchObject({ code: 'E_SESSION_CORRUPT' });
  expect(existsSync(output)).toBe(false);
});

test('rejects an id that exists with other content; drops a name that is taken', async () => {
  const otherHome = testHome();
  mkdirSync(otherHome.sessions, { recursive: true });
  const different = await saveSession(testHome(), { createdAt: new Date(0) });
  cpSync(different.folder, join(otherHome.sessions, saved.id), { recursive: true });
  await expect(importSession(archive, otherHome)).rejects.toMatchObject({ code: 'E_SESSION_ARCHIVE' });
  expect(readdirSync(otherHome.sessions)).toEqual([saved.id]);

  const named = testHome();
  await saveSession(named, { name: 'base', label: 'x' });
  expect(await importSession(archive, named)).toMatchObject({ outcome: 'imported', droppedName: 'base' });
});

test('rejects an archive that is truncated at any position', async () => {
  const { size } = statSync(archive);
  for (const length of [0, 5, 20, 200, Math.floor(size / 2), size - 9, size - 1]) {
    const cut = join(scratch, `cut-${length}.tar.gz`);
    cpSync(archive, cut);
    truncateSync(cut, length);
    await expectRefused(cut);
  }
  await expectRefused(
    writeTar('fewer.tar.gz', validEntries().slice(0, 3)),
    'E_SESSION_ARCHIVE',
    /lacks \d+ files?/,
  );
});

test('rejects files that are not archives of a session', async () => {
  const text = join(scratch, 'notes.txt');
  writeFileSync(text, 'hello');
  await expectRefused(text, 'E_SESSION_ARCHIVE', /not a session archive/);
  await expectRefused(join(scratch, 'absent.tar.gz'), 'E_SESSION_ARCHIVE', /does not exist/);
  await expectRefused(scratch, 'E_SESSION_ARCHIVE', /folder/);
  await expectRefused(writeTar('empty.tar.gz', []), 'E_SESSION_ARCHIVE', /empty/);
});

const evil = Buffer.from('evil');
test.each<[string, (files: Entry[]) => Entry[], RegExp]>([
  [
    'a path that climbs out',
    (files) => [...files, { path: `${saved.id}/../../evil`, content: evil }],
    /a path outside/,
  ],
  [
    'a second top folder',
    (files) => [...files, { path: 'other/session.json', content: evil }],
    /more than one session/,
  ],
  ['a hidden top folder', () => [{ path: '.tmp-1/session.json', content: evil }], /a path outside/],
  ['a file without a folder', () => [{ path: 'session.json', content: evil }], /a path outside/],
  [
    'a symbolic link',
    (files) => [...files, { path: `${saved.id}/derived/l`, type: 'SymbolicLink', linkpath: '/etc' }],
    /SymbolicLink/,
  ],
  [
    'a hard link',
    (files) => [...files, { path: `${saved.id}/derived/l`, type: 'Link', linkpath: '/etc/passwd' }],
    /Link/,
  ],
  [
    'a folder of its own, as tar packs it',
    (files) => [{ path: `${saved.id}/`, type: 'Directory' }, ...files],
    /folder entries/,
  ],
  [
    'a device',
    (files) => [...files, { path: `${saved.id}/derived/d`, type: 'CharacterDevice' }],
    /CharacterDevice/,
  ],
  [
    'an unannounced file',
    (files) => [...files, { path: `${saved.id}/tables/evil.parquet`, content: evil }],
    /does not list/,
  ],
  ['a file twice', (files) => [...files, files[2] as Entry], /duplicate file/],
  ['files before the manifest', (files) => files.toReversed(), /manifest is not the first file/],
  [
    'a larger file than announced',
    ([manifest, hash, ops]) => [
      manifest as Entry,
      hash as Entry,
      { ...(ops as Entry), content: Buffer.alloc(10 ** 6) },
    ],
    /larger than stated/,
  ],
  [
    'other bytes than announced',
    ([manifest, hash, ops]) => [
      manifest as Entry,
      hash as Entry,
      { ...(ops as Entry), content: Buffer.alloc(ops?.content?.length ?? 0) },
    ],
    /checksum/,
  ],
  [
    'a manifest of absurd size',
    () => [{ path: `${saved.id}/session.json`, size: 2 ** 33 }],
    /larger than stated/,
  ],
  [
    'a manifest that is not JSON',
    (files) => [{ ...(files[0] as Entry), content: evil }, ...files.slice(1)],
    /not valid/,
  ],
])('a malicious archive is refused and leaves nothing: %s', async (name, change, text) => {
  await expectRefused(
    writeTar(`${name.replaceAll(' ', '-')}.tar.gz`, change(validEntries())),
    'E_SESSION_ARCHIVE',
    text,
  );
});

test('an absolute path stays inside the session folder or is rejected', async () => {
  const target = join(scratch, 'absolute-evil');
  await expectRefused(writeTar('absolute.tar.gz', [...validEntries(), { path: target, content: evil }]));
  expect(existsSync(target)).toBe(false);
});

test('distinguishes an edited manifest, a newer major version and a session that does not fit', async () => {
  const edit = (
    change: (document: {
      schema: string;
      data: { title: string; tables: Record<string, { bytes: number }[]> };
    }) => void,
  ) => {
    const files = validEntries();
    const document = JSON.parse(String(files[0]?.content));
    change(document);
    return [{ ...(files[0] as Entry), content: Buffer.from(JSON.stringify(document)) }, ...files.slice(1)];
  };
  await expectRefused(
    writeTar(
      'edited.tar.gz',
      edit((document) => (document.data.title = 'faster')),
    ),
    'E_SESSION_CORRUPT',
  );
  await expectRefused(
    writeTar(
      'newer.tar.gz',
      edit((document) => (document.schema = 'inferscope/session/2.0')),
    ),
    'E_SESSION_NEWER',
  );
  const huge = edit(({ data }) => {
    for (const file of data.tables['ops'] ?? []) file.bytes = 2 ** 52;
  });
  await expectRefused(writeTar('huge.tar.gz', huge), 'E_DISK_FULL', /4\u00a0096 TiB/);
});

test('rejects a gzip bomb at its first entry', async () => {
  const bomb = writeTar('bomb.tar.gz', [
    { path: `${saved.id}/session.json`, content: Buffer.alloc(80 * 2 ** 20, 0x20) },
  ]);
  expect(statSync(bomb).size).toBeLessThan(2 ** 20);
  await expectRefused(bomb, 'E_SESSION_ARCHIVE', /larger than stated/);
});

test("rejects endless zeros, but accepts tar's padding", async () => {
  const padded = (name: string, bytes: number): string => {
    const file = writeTar(name, validEntries());
    appendFileSync(file, gzipSync(Buffer.alloc(bytes)));
    return file;
  };
  await expectRefused(padded('endless.tar.gz', 4 * 2 ** 20), 'E_SESSION_ARCHIVE', /after its end/);
  const { outcome } = await importSession(padded('record.tar.gz', 512 * 1024), testHome());
  expect(outcome).toBe('imported');
});

test('does not follow a link in place of a session', async () => {
  const otherHome = testHome();
  mkdirSync(otherHome.sessions, { recursive: true });
  symlinkSync(dirname(saved.folder), join(otherHome.sessions, 'linked'));
  await renameSession(saved, 'base', home);
  await noteSession(saved, 'still here');
  await expect(openSession('linked', otherHome)).rejects.toMatchObject({ code: 'E_SESSION_NOT_FOUND' });
});
