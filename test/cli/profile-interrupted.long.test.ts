import { cpSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { profileDocumentSchema } from '../../src/model/documents/profile.js';
import { testFolder } from '../../src/session/test-folder.js';
import {
  expectFailure,
  inferscope,
  unfinishedSessions,
  createSetup,
  profileJson,
  listSessions,
  startCli,
  tinyProfileArgs,
  waitForExit,
  waitForRecord,
  type TestSetup,
  type RecordLine,
} from './run-cli.js';

let setup: TestSetup;
/** A home with one session, copied for each test. */
const template = createSetup();
beforeAll(() => void profileJson(template, tinyProfileArgs(template, '--name', 'before')));
beforeEach(() => {
  setup = { ...template, home: join(testFolder(), 'home') };
  cpSync(template.home, setup.home, { recursive: true });
});

/** Long enough to be interrupted: many repeats of at least a quarter of a second. */
function slowArgs(...more: string[]): string[] {
  const sizes = ['--input-len', '8', '--output-len', '100', '--launches', '2', '--repeats', '500'];
  return ['profile', '--model', setup.slow, '--threads', '1', ...sizes, '--json', ...more];
}

const isModelLine = (line: RecordLine) => line.type === 'model';
const isTimedRepeat = (line: RecordLine) => line.type === 'request' && line.warmup === false;

/** Ctrl-C as the terminal sends it: to every process of the group. */
const pressControlC = (pid: number) => process.kill(-pid, 'SIGINT');

/** Expects that the measurements before the interrupt are saved as a session with a report. @returns its id */
function expectSaved(status: 'interrupted' | 'failed'): string {
  const [before, saved, ...others] = listSessions(setup);
  expect([before?.name, saved?.status, others]).toEqual(['before', status, []]);
  expect(unfinishedSessions(setup)).toEqual([]);
  expect(existsSync(join(setup.home, 'sessions', saved!.id, 'derived', 'report.html'))).toBe(true);
  return saved!.id;
}

function expectNothingSaved(): void {
  expect(listSessions(setup).map((session) => session.name)).toEqual(['before']);
}

test('Ctrl-C during warm-up exits with 130 and saves no session', async () => {
  const { child, exit } = startCli(setup, slowArgs('--output-len', '240'));
  const { pid } = await waitForRecord(setup, 'clean', isModelLine);
  pressControlC(child.pid!);
  const result = await exit;
  expect(expectFailure(result, 130, 'E_INTERRUPTED').why).toContain('no session was');
  await waitForExit(pid);
  expectNothingSaved();
  expect(unfinishedSessions(setup)).toEqual([]);
});

test('Ctrl-C after a timed repeat exits with 130, and saves the measurements as a session with a report', async () => {
  const { child, exit } = startCli(setup, slowArgs());
  await waitForRecord(setup, 'clean', isTimedRepeat);
  pressControlC(child.pid!);
  const { status, stdout, stderr } = await exit;
  expect([status, stderr.includes('error')], stderr).toEqual([130, false]);
  const { data, issues } = profileDocumentSchema.parse(JSON.parse(stdout));
  expect(data.session.status).toBe('interrupted');
  expect(data.latency.repeats).toBeGreaterThanOrEqual(1);
  expect(data.latency.repeats).toBeLessThan(1000);
  expect(data.stages.find((stage) => stage.kind === 'decode')!.breakdown).toBeNull();
  expect(issues).toContainEqual(expect.objectContaining({ code: 'interrupted', severity: 'warning' }));
  expect(expectSaved('interrupted')).toBe(data.session.id);
  expect(stderr).toContain(data.session.id);
});

test('Ctrl-C in the profiled pass saves the timing, and traces of complete repeats', async () => {
  const args = slowArgs('--launches', '1', '--repeats', '1', '--output-len', '120');
  const { child, exit } = startCli(setup, args);
  // The warm-up of the profiled pass has been recorded, so the first timed repeat is running.
  await waitForRecord(setup, 'profiled', (line) => line.type === 'request');
  pressControlC(child.pid!);
  const { status, stdout, stderr } = await exit;
  expect(status, stderr).toBe(130);
  const { data, issues } = profileDocumentSchema.parse(JSON.parse(stdout));
  expect(data.latency.repeats).toBe(1);
  expect(issues.map((issue) => issue.code)).toContain('interrupted');
  expect(issues.map((issue) => issue.code)).not.toContain('trace_unreadable');
  expectSaved('interrupted');
});

test('a second Ctrl-C exits at once; the next run cleans up', async () => {
  const { child, exit } = startCli(setup, slowArgs());
  const { pid } = await waitForRecord(setup, 'clean', isTimedRepeat);
  child.kill('SIGINT');
  await new Promise((resolve) => setTimeout(resolve, 5));
  child.kill('SIGINT');
  await exit;
  // A shell would report 130.
  expect([child.exitCode, child.signalCode]).toEqual([null, 'SIGINT']);
  await waitForExit(pid);
  // The first run either saved its session in time or left one unfinished folder.
  listSessions(setup);
  profileJson(setup, tinyProfileArgs(setup));
  expect(unfinishedSessions(setup)).toEqual([]);
});

test('after kill -9 of the command its engine exits too, no session is listed, and the next run cleans up', async () => {
  const { child, exit } = startCli(setup, slowArgs());
  const { pid } = await waitForRecord(setup, 'clean', isTimedRepeat);
  child.kill('SIGKILL');
  await exit;
  await waitForExit(pid);
  expectNothingSaved();
  expect(unfinishedSessions(setup)).toHaveLength(1);
  profileJson(setup, tinyProfileArgs(setup, '--name', 'after'));
  expect(listSessions(setup).map((session) => session.name)).toEqual(['before', 'after']);
  expect(unfinishedSessions(setup)).toEqual([]);
});

test('kill -9 of the engine in its first launch exits with 4 and E_OUT_OF_MEMORY, and saves nothing', async () => {
  const { exit } = startCli(setup, slowArgs());
  const { pid } = await waitForRecord(setup, 'clean', isModelLine);
  process.kill(pid, 'SIGKILL');
  const result = await exit;
  expect(expectFailure(result, 4, 'E_OUT_OF_MEMORY').why).toContain('SIGKILL');
  expectNothingSaved();
  expect(unfinishedSessions(setup)).toEqual([]);
});

test('kill -9 of the engine in its second launch saves the first one, with status failed', async () => {
  const { exit } = startCli(setup, slowArgs('--repeats', '2', '--output-len', '60'));
  const first = await waitForRecord(setup, 'clean', isModelLine);
  const second = await waitForRecord(setup, 'clean', (line) => isModelLine(line) && line.pid !== first.pid);
  process.kill(second.pid, 'SIGKILL');
  const result = await exit;
  expectFailure(result, 4, 'E_OUT_OF_MEMORY');
  const id = expectSaved('failed');
  const { status, stdout } = inferscope(setup, ['session', 'show', id, '--json']);
  expect(status).toBe(0);
  const document = JSON.parse(stdout) as { data: { import_issues: { code: string; text: string }[] } };
  expect(document.data.import_issues).toContainEqual(
    expect.objectContaining({ code: 'ended_early', text: expect.stringContaining('killed') }),
  );
  // The output names the session.
  expect(result.stderr).toContain(id);
});

test('an engine that exits with another signal gives E_WORKLOAD_FAILED', async () => {
  const { exit } = startCli(setup, slowArgs());
  const { pid } = await waitForRecord(setup, 'clean', isModelLine);
  process.kill(pid, 'SIGABRT');
  const result = await exit;
  expect(expectFailure(result, 4, 'E_WORKLOAD_FAILED').what).toContain('SIGABRT');
  expectNothingSaved();
});

test('two runs at once in one home are both saved', async () => {
  const both = [
    startCli(setup, tinyProfileArgs(setup, '--json')),
    startCli(setup, tinyProfileArgs(setup, '--json')),
  ];
  const results = await Promise.all(both.map(({ exit }) => exit));
  expect(results.map(({ status }) => status)).toEqual([0, 0]);
  const ids = results.map(({ stdout }) => profileDocumentSchema.parse(JSON.parse(stdout)).data.session.id);
  expect(new Set(ids).size).toBe(2);
  expect(new Set(listSessions(setup).map((session) => session.id))).toEqual(
    new Set([...ids, listSessions(setup)[0]!.id]),
  );
  expect(unfinishedSessions(setup)).toEqual([]);
});
