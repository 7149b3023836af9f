import { readdirSync } from 'node:fs';
import process from 'node:process';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { homeFolders } from '../session/home.js';
import { openSession } from '../session/open.js';
import { testFolder } from '../session/test-folder.js';
import { inferscopeCapture } from './save-record.js';
import { addToSession, recordSession } from './record-session.js';

const secret = 'hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345';
let home: ReturnType<typeof homeFolders>;

beforeEach(() => {
  const root = testFolder();
  home = homeFolders({ ...process.env, INFERSCOPE_HOME: root });
  vi.stubEnv('HF_TOKEN', secret);
});
afterEach(() => vi.unstubAllEnvs());

const plan = () => ({ label: 'x', kind: 'bench', doing: 'save the test', home });

test('title, issues and command contain no secret of the environment; sample times count from the start', async () => {
  const saved = await recordSession(plan(), async (recording) => {
    recording.append({
      telemetry: [
        {
          execution_id: 'a',
          capture_id: 'a',
          host: 'localhost',
          t_ns: recording.originNs + 5,
          scope: 'host',
          metric: 'm',
          value: 1,
        },
      ],
      memory: [],
    });
    await recording.saveJson('bench-plan', { a: 1 });
    return {
      title: `model with ${secret}`,
      status: 'complete',
      issues: [{ code: 'interrupted', severity: 'info', text: `saw ${secret}` }],
      software: { engine: '1.2' },
      result: { answer: 42 },
    };
  });
  expect(saved.answer).toBe(42);
  const session = await openSession(saved.id, home);
  const { manifest, issues } = session;
  expect(JSON.stringify([manifest, issues])).not.toContain(secret);
  expect(manifest.title).toBe('model with ***');
  expect(manifest.artifacts.map(({ kind }) => kind)).toEqual(['bench-plan']);
  expect(manifest.clock_pairs).toHaveLength(2);
  expect(manifest.software).toMatchObject({ engine: '1.2', node: process.versions.node });
  const database = await session.connect();
  expect(await database.query('SELECT t_ns::INTEGER AS t FROM telemetry')).toEqual([{ t: 5 }]);
  await database.close();
});

test('a session recorded elsewhere has no facts of this machine', async () => {
  const startedAt = new Date('2026-01-02T03:04:05Z');
  const { id } = await recordSession(plan(), async () => ({
    title: 't',
    status: 'complete',
    elsewhere: { startedAt },
    hardware: { gpu_name: 'NVIDIA H200' },
    result: {},
  }));
  const { manifest } = await openSession(id, home);
  expect(manifest).toMatchObject({
    started_at: startedAt.toISOString(),
    clock_pairs: [],
    hardware: { gpu_name: 'NVIDIA H200' },
    software: {},
  });
  expect(Object.keys(manifest.hardware)).toEqual(['gpu_name']);
});

test('work that throws leaves no files', async () => {
  const work = recordSession(plan(), async ({ files }) => {
    await files.addArtifact(Buffer.from('x'), { kind: 'log', captureId: null });
    throw new Error('it broke');
  });
  await expect(work).rejects.toThrow('it broke');
  expect(readdirSync(home.sessions)).toEqual([]);
});

test('an error of a full disk says what could not be done', async () => {
  const full = Object.assign(new Error('no space'), { code: 'ENOSPC' });
  await expect(recordSession(plan(), () => Promise.reject(full))).rejects.toMatchObject({
    code: 'E_DISK_FULL',
    parts: { what: expect.stringContaining('save the test') },
  });
});

test('an added capture keeps clock and ids and has no secrets; a failed one changes nothing', async () => {
  vi.stubEnv('INFERSCOPE_HOME', home.root);
  const { id } = await recordSession(plan(), async () => ({ title: 't', status: 'complete', result: {} }));
  const before = (await openSession(id, home)).manifest;
  const full = Object.assign(new Error('no space'), { code: 'ENOSPC' });
  await expect(addToSession(id, () => Promise.reject(full))).rejects.toMatchObject({ code: 'E_DISK_FULL' });
  expect((await openSession(id, home)).manifest).toEqual(before);
  const added = await addToSession(id, async ({ zero, usedCaptureIds, redact }) => {
    expect(zero.realtime_ns).toBe(BigInt(Date.parse(before.started_at)) * 1_000_000n);
    expect(usedCaptureIds).toEqual([]);
    expect(redact(secret)).toBe('***');
    return {
      executions: [],
      captures: [inferscopeCapture('late', 'x', 'inferscope', 'sampler')],
      issues: [{ code: 'interrupted', severity: 'info', text: `saw ${secret}` }],
    };
  });
  expect(added.id).toBe(id);
  const { manifest, issues } = await openSession(id, home);
  expect(manifest.captures.map(({ capture_id }) => capture_id)).toEqual(['late']);
  expect(issues.map(({ text }) => text)).toContain('saw ***');
  expect(readdirSync(home.sessions)).toEqual([id]);
});
