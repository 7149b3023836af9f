import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { addCapture } from './capture.js';
import { exportSession } from './archive-export.js';
import { importSession } from './archive-import.js';
import { createSession } from './create.js';
import { listSessions } from './list.js';
import { digestOf } from './digest.js';
import { manifestHashName, manifestName } from './manifest-file.js';
import { openSession } from './open.js';
import { testFolder, testHome } from './test-folder.js';
import { summary } from './test-session.js';

const fixtures = join(import.meta.dirname, '../../test/fixtures');

// Sessions of versions without the field; tables and artifacts as in their session.json.
test.each([
  ['diagnosis/low_occupancy-fixed.tgz', ['timeline', 'counters', 'roofline']],
  ['kineto-torch2.11-h200/tiny-llm-b1-session.tgz', ['timeline']],
  ['monitor-0.1-h200/session.tar.gz', ['telemetry']],
  ['vllm-0.26-h200/bench-serve.tgz', ['load', 'telemetry']],
  ['vllm-0.26-h200/run-in-process.tgz', ['timeline', 'telemetry']],
  ['memory-torch2.11-h200/llama-2-7b.tgz', ['memory', 'bench', 'telemetry']],
])('%s opens with its subjects, its file as it was', async (path, subjects) => {
  const home = testHome();
  const { id } = await importSession(join(fixtures, path), home);
  const session = await openSession(id, home);
  expect(session.manifest.subjects).toEqual(subjects);
  expect(listSessions(home)[0]!.subjects).toEqual(subjects);
  const text = readFileSync(join(session.folder, 'session.json'), 'utf8');
  expect(text).not.toContain('"subjects"');
  expect(readFileSync(join(session.folder, manifestHashName), 'utf8')).toContain(session.sha256);
});

const keys = { execution_id: 'clean', host: 'h', pid: 7, rank: 0 };

test('a session states its subjects, a capture adds its own, and an archive keeps them', async () => {
  const home = testHome();
  const writer = await createSession({ label: 'x', kind: 'run', home });
  writer.sink.append('telemetry', {
    ...keys,
    capture_id: 'c0',
    scope: 'gpu0',
    metric: 'power_w',
    value: 1,
    t_ns: 0,
  });
  await writer.addArtifact(Buffer.from('{}'), { kind: 'ncu-csv', captureId: 'c0', name: 'raw.csv' });
  const { id, folder } = await writer.finish(summary);
  expect(storedSubjects(folder)).toEqual(['telemetry']);
  const capture = await addCapture(await openSession(id, home), home);
  capture.sink.append('kernels', { ...keys, capture_id: 'c1', device: 0, name: 'k', start_ns: 0, dur_ns: 1 });
  await capture.finish({ executions: [], captures: [] });
  expect(storedSubjects(folder)).toEqual(['timeline', 'telemetry']);
  const { path } = await exportSession({ id, folder }, { output: join(testFolder(), 'x.tar.gz') });
  const otherHome = testHome();
  await importSession(path, otherHome);
  expect((await openSession(id, otherHome)).manifest.subjects).toEqual(['timeline', 'telemetry']);
});

test('reads the known subjects of a newer minor version, derives those of an older one, and rejects another form as damage', async () => {
  const home = testHome();
  const writer = await createSession({ label: 'x', kind: 'profile', home });
  writer.sink.append('ops', { ...keys, capture_id: 'c0', name: 'MatMul', start_ns: 0, dur_ns: 1 });
  const { id, folder } = await writer.finish(summary);
  const rewriteSubjects = (subjects: unknown) => {
    const file = JSON.parse(readFileSync(join(folder, manifestName), 'utf8')) as { data: object };
    const text = Buffer.from(JSON.stringify({ ...file, data: { ...file.data, subjects } }));
    writeFileSync(join(folder, manifestName), text);
    writeFileSync(join(folder, manifestHashName), digestOf(text).sha256);
  };
  rewriteSubjects(['profile', 'telemetry', 'quantum', 'load']);
  expect((await openSession(id, home)).manifest.subjects).toEqual([
    'profile',
    'load',
    'timeline',
    'telemetry',
  ]);
  rewriteSubjects('load');
  await expect(openSession(id, home)).rejects.toMatchObject({ code: 'E_SESSION_CORRUPT' });
});

const storedSubjects = (folder: string) =>
  (JSON.parse(readFileSync(join(folder, 'session.json'), 'utf8')) as { data: { subjects: string[] } }).data
    .subjects;
