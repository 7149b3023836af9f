import { cpSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { profileDocumentSchema } from '../../src/model/documents/profile.js';
import { testFolder } from '../../src/session/test-folder.js';
import {
  expectFailure,
  inferscope,
  leftovers,
  place,
  profileJson,
  sessions,
  start,
  tinyArgs,
  untilDead,
  untilRecorded,
  type Place,
  type RecordLine,
} from './profile-cli.js';

let setup: Place;
/** A home with one session, copied for each test. */
const template = place();
beforeAll(() => void profileJson(template, tinyArgs(template, '--name', 'before')));
beforeEach(() => {
  setup = { ...template, home: join(testFolder(), 'home') };
  cpSync(template.home, setup.home, { recursive: true });
});

/** Long enough to be interrupted: many repeats of at least a quarter of a second. */
function slowArgs(...more: string[]): string[] {
  const sizes = ['--input-len', '8', '--output-len', '100', '--launches', '2', '--repeats', '500'];
  return ['profile', '--model', setup.slow, '--threads', '1', ...sizes, '--json', ...more];
}

const anyLine = (line: RecordLine) => line.type === 'model';
const timedRepeat = (line: RecordLine) => line.type === 'request' && line.warmup === false;

/** Ctrl-C as the terminal sends it: to every process of the group. */
const pressControlC = (pid: number) => process.kill(-pid, 'SIGINT');

/** The measurements before the interrupt are saved as a complete session with a report. */
function expectKept(status: 'interrupted' | 'failed'): string {
  const [before, saved, ...more] = sessions(setup);
  expect([before?.name, saved?.status, more]).toEqual(['before', status, []]);
  expect(leftovers(setup)).toEqual([]);
  expect(existsSync(join(setup.home, 'sessions', saved!.id, 'derived', 'report.html'))).toBe(true);
  return saved!.id;
}

function expectOnlyBefore(): void {
  expect(sessions(setup).map((session) => session.name)).toEqual(['before']);
}

test('Ctrl-C during warm-up: exit 130, no session', async () => {
  const { child, ended } = start(setup, slowArgs('--output-len', '240'));
  const { pid } = await untilRecorded(setup, 'clean', anyLine);
  pressControlC(child.pid!);
  const ran = await ended;
  const error = ran.stderr.slice(ran.stderr.indexOf('error: '));
  expect(expectFailure({ ...ran, stderr: error }, 130, 'E_INTERRUPTED').why).toContain('no session was');
  await untilDead(pid);
  expectOnlyBefore();
  expect(leftovers(setup)).toEqual([]);
});

test('Ctrl-C after a timed repeat: exit 130, and the measurements are a session with its report', async () => {
  const { child, ended } = start(setup, slowArgs());
  await untilRecorded(setup, 'clean', timedRepeat);
  pressControlC(child.pid!);
  const { status, stdout, stderr } = await ended;
  expect([status, stderr.includes('error')], stderr).toEqual([130, false]);
  const { data, issues } = profileDocumentSchema.parse(JSON.parse(stdout));
  expect(data.session.status).toBe('interrupted');
  expect(data.latency.repeats).toBeGreaterThanOrEqual(1);
  expect(data.latency.repeats).toBeLessThan(1000);
  expect(data.stages.find((stage) => stage.kind === 'decode')!.breakdown).toBeNull();
  expect(issues).toContainEqual(expect.objectContaining({ code: 'interrupted', severity: 'warning' }));
  expect(expectKept('interrupted')).toBe(data.session.id);
  expect(stderr).toContain(data.session.id);
});

test('Ctrl-C in the profiled pass: saves the timing, and traces of complete repeats', async () => {
  const args = slowArgs('--launches', '1', '--repeats', '1', '--output-len', '120');
  const { child, ended } = start(setup, args);
  // The warm-up of the profiled pass has been recorded, so the first timed repeat is running.
  await untilRecorded(setup, 'profiled', (line) => line.type === 'request');
  pressControlC(child.pid!);
  const { status, stdout, stderr } = await ended;
  expect(status, stderr).toBe(130);
  const { data, issues } = profileDocumentSchema.parse(JSON.parse(stdout));
  expect(data.latency.repeats).toBe(1);
  expect(issues.map((issue) => issue.code)).toContain('interrupted');
  expect(issues.map((issue) => issue.code)).not.toContain('trace_unreadable');
  expectKept('interrupted');
});

test('a second Ctrl-C exits at once; the next run cleans up', async () => {
  const { child, ended } = start(setup, slowArgs());
  const { pid } = await untilRecorded(setup, 'clean', timedRepeat);
  child.kill('SIGINT');
  await new Promise((resolve) => setTimeout(resolve, 5));
  child.kill('SIGINT');
  await ended;
  // A shell would report 130.
  expect([child.exitCode, child.signalCode]).toEqual([null, 'SIGINT']);
  await untilDead(pid);
  // It either saved the session in time or left one unfinished folder.
  sessions(setup);
  profileJson(setup, tinyArgs(setup));
  expect(leftovers(setup)).toEqual([]);
});

test('kill -9 of the command: its engine exits too, nothing of it is listed, the next run cleans up', async () => {
  const { child, ended } = start(setup, slowArgs());
  const { pid } = await untilRecorded(setup, 'clean', timedRepeat);
  child.kill('SIGKILL');
  await ended;
  await untilDead(pid);
  expectOnlyBefore();
  expect(leftovers(setup)).toHaveLength(1);
  profileJson(setup, tinyArgs(setup, '--name', 'after'));
  expect(sessions(setup).map((session) => session.name)).toEqual(['before', 'after']);
  expect(leftovers(setup)).toEqual([]);
});

test('kill -9 of the engine in its first launch: E_OUT_OF_MEMORY, exit 4, nothing saved', async () => {
  const { ended } = start(setup, slowArgs());
  const { pid } = await untilRecorded(setup, 'clean', anyLine);
  process.kill(pid, 'SIGKILL');
  const ran = await ended;
  const error = ran.stderr.slice(ran.stderr.indexOf('error: '));
  expect(expectFailure({ ...ran, stderr: error }, 4, 'E_OUT_OF_MEMORY').why).toContain('SIGKILL');
  expectOnlyBefore();
  expect(leftovers(setup)).toEqual([]);
});

test('kill -9 of the engine in its second launch: the first one is saved, with status failed', async () => {
  const { ended } = start(setup, slowArgs('--repeats', '2', '--output-len', '60'));
  const first = await untilRecorded(setup, 'clean', anyLine);
  const second = await untilRecorded(setup, 'clean', (line) => anyLine(line) && line.pid !== first.pid);
  process.kill(second.pid, 'SIGKILL');
  const ran = await ended;
  const error = ran.stderr.slice(ran.stderr.indexOf('error: '));
  expectFailure({ ...ran, stderr: error }, 4, 'E_OUT_OF_MEMORY');
  const id = expectKept('failed');
  const { status, stdout } = inferscope(setup, ['session', 'show', id, '--json']);
  expect(status).toBe(0);
  const shown = JSON.parse(stdout) as { data: { import_issues: { code: string; text: string }[] } };
  expect(shown.data.import_issues).toContainEqual(
    expect.objectContaining({ code: 'ended_early', text: expect.stringContaining('killed') }),
  );
  // The output names the session.
  expect(ran.stderr).toContain(id);
});

test('the engine exits with another error: E_WORKLOAD_FAILED', async () => {
  const { ended } = start(setup, slowArgs());
  const { pid } = await untilRecorded(setup, 'clean', anyLine);
  process.kill(pid, 'SIGABRT');
  const ran = await ended;
  const error = ran.stderr.slice(ran.stderr.indexOf('error: '));
  expect(expectFailure({ ...ran, stderr: error }, 4, 'E_WORKLOAD_FAILED').what).toContain('SIGABRT');
  expectOnlyBefore();
});

test('two runs at once in one home: both are saved', async () => {
  const both = [start(setup, tinyArgs(setup, '--json')), start(setup, tinyArgs(setup, '--json'))];
  const ran = await Promise.all(both.map((running) => running.ended));
  expect(ran.map((result) => result.status)).toEqual([0, 0]);
  const ids = ran.map(({ stdout }) => profileDocumentSchema.parse(JSON.parse(stdout)).data.session.id);
  expect(new Set(ids).size).toBe(2);
  expect(new Set(sessions(setup).map((session) => session.id))).toEqual(
    new Set([...ids, sessions(setup)[0]!.id]),
  );
  expect(leftovers(setup)).toEqual([]);
});
