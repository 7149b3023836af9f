import { readFileSync, mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Workload } from '../model/manifest.js';
import { addCapture, type CaptureSummary } from './capture.js';
import { noteSession } from './edit.js';
import { openSession } from './open.js';
import { asidePath, removeStaleFolders } from './temporary-folder.js';
import { testHome } from './test-folder.js';
import { saveSession } from './test-session.js';
import { verifySession } from './verify.js';

const workloadNamed = (name: string): Workload => ({
  model: {
    name,
    config: {},
    dtype: 'bfloat16',
    quantization: null,
    weights: 'random',
    num_parameters: null,
    weight_bytes: null,
  },
  engine: { name: 'transformers', version: null, options: {} },
  device: 'cuda',
  threads: null,
  batch_size: null,
  input_len: null,
  output_len: null,
  tensor_parallel_size: 1,
});

function captureOf(capture_id: string): CaptureSummary {
  return {
    executions: [
      { execution_id: 'ncu', purpose: 'counters', command: ['a'], exit_code: 0, start_ns: 0, end_ns: 5 },
    ],
    captures: [
      {
        capture_id,
        execution_id: 'ncu',
        tool: { name: 'ncu', version: '2026.1' },
        importer: 'ncu-csv',
        clock: { name: 'none', resolution_ns: 1, error_bound_ns: null },
      },
    ],
    issues: [{ code: 'no_counters', severity: 'info', text: 'two kernels without counters', count: 2 }],
  };
}

test('facts of an added capture fill what the session lacks, and replace nothing', async () => {
  const home = testHome();
  const { id } = await saveSession(home, { name: 'base' });
  const { manifest } = await openSession(id, home);
  const added = async (capture_id: string, name: string) => {
    const writer = await addCapture(await openSession(id, home), home);
    const hardware = { gpu_name: name, ...manifest.hardware };
    await writer.finish({ ...captureOf(capture_id), workload: workloadNamed(name), hardware });
    return (await openSession(id, home)).manifest;
  };
  const first = await added('ncu1', 'one');
  expect([first.workload?.model?.name, first.hardware['gpu_name']]).toEqual(['one', 'one']);
  const second = await added('ncu2', 'two');
  expect([second.workload?.model?.name, second.hardware['gpu_name']]).toEqual(['one', 'one']);
});

test('adds a capture to a saved session; the old state is readable until the swap, notes stay', async () => {
  const home = testHome();
  const { id, folder } = await saveSession(home, { name: 'base' });
  await noteSession({ id, folder }, 'kept');
  const session = await openSession(id, home);
  const writer = await addCapture(session, home);
  writer.sink.append('counters', { capture_id: 'ncu1', execution_id: 'ncu', metric: 'm', value: 1.5 });
  writer.sink.append('ops', { capture_id: 'ncu1', execution_id: 'ncu', name: 'later', dur_ns: 100 });
  await writer.addArtifact(Buffer.from('csv'), { kind: 'ncu-csv', captureId: 'ncu1', name: 'ncu.csv' });
  expect((await openSession(id, home)).manifest.captures).toHaveLength(1);

  const open = await session.connect();
  expect(await writer.finish(captureOf('ncu1'))).toEqual({ id, folder });
  // A database opened before the swap still reads the files, which are the same.
  expect(await open.query('SELECT count(*) AS n FROM ops')).toEqual([{ n: 3 }]);
  await open.close();

  const joined = await openSession('base', home);
  expect(joined.manifest.captures.map(({ capture_id }) => capture_id)).toEqual(['c0', 'ncu1']);
  expect(joined.issues).toMatchObject([{ code: 'no_counters', count: 2 }]);
  expect(joined.user.notes).toMatchObject([{ text: 'kept' }]);
  const database = await joined.connect();
  expect(await database.query('SELECT capture_id, count(*) AS n FROM ops GROUP BY 1 ORDER BY 1')).toEqual([
    { capture_id: 'c0', n: 3 },
    { capture_id: 'ncu1', n: 1 },
  ]);
  await database.close();
  expect((await verifySession({ id, folder })).ok).toBe(true);
  expect(readdirSync(home.sessions)).toEqual([id]);
});

test('two captures added at once are both saved; a capture that exists already is rejected without damage', async () => {
  const home = testHome();
  const { id, folder } = await saveSession(home);
  const session = await openSession(id, home);
  const add = async (capture: string) => {
    const writer = await addCapture(session, home);
    writer.sink.append('counters', { capture_id: capture, execution_id: 'ncu', value: 1 });
    return writer.finish(captureOf(capture));
  };
  await Promise.all([add('a1'), add('a2'), add('a3')]);
  const joined = await openSession(id, home);
  expect(joined.manifest.captures.map(({ capture_id }) => capture_id).sort()).toEqual([
    'a1',
    'a2',
    'a3',
    'c0',
  ]);
  await expect(add('a1')).rejects.toMatchObject({ code: 'E_USAGE' });
  expect((await verifySession({ id, folder })).ok).toBe(true);
  expect(readdirSync(home.sessions)).toEqual([id]);
});

test('the next writer restores a session when a process died between the two renames of a swap', async () => {
  const home = testHome();
  const { id, folder } = await saveSession(home);
  // Name made by a process with a pid that is not running: pid 2^22 + 1 is above the kernel's limit.
  const aside = asidePath(home, 'swap', id).replace(/\.swap-\d+-/, '.swap-4194305-');
  renameSync(folder, aside);
  expect((await openSession(id, home)).folder).toBe(aside);
  removeStaleFolders(home);
  expect(readdirSync(home.sessions)).toEqual([id]);
  expect((await verifySession({ id, folder })).ok).toBe(true);
});

test('removes only folders that no process writes any more', async () => {
  const home = testHome();
  const { folder } = await saveSession(home);
  const aside = asidePath(home, 'trash', 'x');
  const dead = aside.replace(/\.trash-\d+-/, '.trash-4194305-');
  // A writer on another machine: its process ids have no meaning here.
  const foreign = dead.replace(/(\.trash-\d+-\d+)-[0-9a-f]{8}-/, '$1-00000000-');
  expect(foreign).not.toBe(dead);
  for (const path of [aside, dead, foreign]) {
    mkdirSync(path);
    writeFileSync(join(path, 'f'), '');
  }
  removeStaleFolders(home);
  expect(
    readdirSync(home.sessions)
      .map((name) => join(home.sessions, name))
      .sort(),
  ).toEqual([aside, foreign, folder].sort());
  removeStaleFolders(home, Date.now() + 25 * 3600 * 1000);
  expect(readdirSync(home.sessions)).not.toContain(foreign.split('/').at(-1));
  expect(readFileSync(join(aside, 'f'), 'utf8')).toBe('');
});
