import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { openGpus } from '../../src/capture/telemetry-gpus.js';
import { monitorDocumentSchema } from '../../src/model/documents/monitor.js';
import { testFolder } from '../../src/session/test-folder.js';
import {
  expectFailure,
  inferscope,
  unfinishedSessions,
  createSetup,
  type CliResult,
  listSessions,
  startCli,
  sqlRows,
} from './run-cli.js';
import { captures } from './capture-files.js';

const setup = createSetup();
const { gpus } = await openGpus();
gpus?.close();

function parseMonitor({ status, stdout, stderr }: CliResult, exitCode = 0) {
  expect([status, stderr.match(/error.*/)?.[0]]).toEqual([exitCode, undefined]);
  return monitorDocumentSchema.parse(JSON.parse(stdout)).data;
}

describe('this machine', () => {
  test('--duration stops it; the host is sampled, a missing GPU is reported, and no files are left', () => {
    const temporary = testFolder();
    const result = inferscope(setup, ['monitor', '--duration', '1500ms', '--json'], { TMPDIR: temporary });
    const data = parseMonitor(result);
    expect(data.session.id).toBeNull();
    expect(data.duration_s.value!).toBeGreaterThan(1);
    const metric = (name: string) =>
      data.host.metrics.find((candidate) => `${candidate.scope} ${candidate.metric}` === name);
    expect(metric('host utilization_percent')!.max).toBeLessThanOrEqual(100);
    expect(metric('host memory_used_bytes')!.mean).toBeGreaterThan(2 ** 26);
    expect(metric('inferscope rss_bytes')!.mean).toBeGreaterThan(2 ** 25);
    if (!gpus) {
      expect(data.plan.no_gpus!.text).toMatch(/libnvidia-ml|driver/i);
      expect(result.stderr).toContain('only the host is sampled');
      expect(data.devices).toEqual([]);
    }
    expect(readdirSync(temporary)).toEqual([]);
    expect(listSessions(setup)).toEqual([]);
  });

  test.runIf(!gpus)('--require-gpu exits with 3 on a machine without GPUs', () => {
    const { what, fix } = expectFailure(
      inferscope(setup, ['monitor', '--require-gpu', '--json']),
      3,
      'E_TOOL_MISSING',
    );
    expect(what).toContain('no GPU');
    expect(fix).toContain('doctor');
  });

  test('without a terminal prints one line per second; Ctrl-C prints the summary with exit code 0', async () => {
    const { child, exit } = startCli(setup, ['monitor', '--record', '--name', 'watched']);
    let output = '';
    child.stdout!.on('data', (chunk) => (output += String(chunk)));
    for (let tries = 0; tries < 1800 && !output.includes('4 s  '); tries++) await sleep(50);
    process.kill(-child.pid!, 'SIGINT');
    const { status, stdout, stderr } = await exit;
    expect([status, stderr.match(/error.*/)?.[0]]).toEqual([0, undefined]);
    expect(stdout).toMatch(/^ +1 s {2}.*host CPU \d+ % · memory [\d.]+\/[\d.]+ GiB$/m);
    expect(stdout).toMatch(/^ +Host$[^]*^ +utilization +\d/m);
    expect(listSessions(setup).map(({ name, status: sessionStatus }) => [name, sessionStatus])).toEqual([
      ['watched', 'complete'],
    ]);
    const sql = "SELECT count(*) FROM telemetry WHERE scope = 'host' AND metric = 'utilization_percent'";
    // Four seconds at 20 Hz, fewer on a busy machine.
    expect(Number(sqlRows(setup, 'watched', sql)[0]![0])).toBeGreaterThan(15);
    inferscope(setup, ['session', 'delete', 'watched', '--yes']);
  });
});

describe('--while', () => {
  const busy =
    'const end = Date.now() + 1200; while (Date.now() < end); console.log("out"); console.error("err");';

  test('watches the program: passes on its output and records its CPU time', () => {
    const result = inferscope(setup, ['monitor', '--json', '--while', '--', process.execPath, '-e', busy]);
    const data = parseMonitor(result);
    // With --json, stdout contains only the document.
    expect(result.stderr).toContain('out\n');
    expect(result.stderr).toContain('err\n');
    expect(data.plan.program).toMatchObject({ exit_code: 0, signal: null });
    const { start_ns, end_ns } = data.plan.program!;
    // Sampling started before the program.
    expect(start_ns).toBeGreaterThan(0.2e9);
    expect(end_ns - start_ns).toBeGreaterThan(1.1e9);
    const cores = data.host.metrics.find(
      ({ scope, metric }) => scope === 'process' && metric === 'cores_busy',
    );
    expect(cores!.max).toBeGreaterThan(0.2);
    const text = inferscope(setup, [
      'monitor',
      '--while',
      '--',
      process.execPath,
      '-e',
      'console.log("out")',
    ]);
    expect(text.stdout.startsWith('out\n')).toBe(true);
    expect(text.stdout).toContain('exit code 0');
  });

  test('if the program fails, exits with 4, or with the program’s code if --exit-code child', () => {
    const failing = ['--while', '--', process.execPath, '-e', 'console.error("failing"); process.exit(7)'];
    const failed = inferscope(setup, ['monitor', '--json', ...failing]);
    expect(parseMonitor(failed, 4).plan.program!.exit_code).toBe(7);
    expect(failed.stderr).toContain('failing');
    expect(inferscope(setup, ['monitor', '--quiet', '--exit-code', 'child', ...failing]).status).toBe(7);
    const absent = inferscope(setup, ['monitor', '--exit-code', 'child', '--while', '--', './not-there']);
    expect(absent.status).toBe(127);
  });

  test('Ctrl-C reaches the program, and the summary is printed with exit code 130', async () => {
    const script =
      'process.on("SIGINT", () => { console.log("cleaned up"); process.exit(0); }); console.log("up"); setInterval(() => {}, 1000);';
    const { child, exit } = startCli(setup, ['monitor', '--while', '--', process.execPath, '-e', script]);
    let output = '';
    child.stdout!.on('data', (chunk) => (output += String(chunk)));
    for (let tries = 0; tries < 1800 && !output.includes('up'); tries++) await sleep(50);
    child.kill('SIGINT');
    const { status, stdout } = await exit;
    expect(status).toBe(130);
    expect(stdout).toContain('cleaned up');
    expect(stdout).toMatch(/^ +Host$[^]*^ +utilization +\d/m);
  });
});

describe('recordings of nvidia-smi', () => {
  test('prints a recording with queries, and reports a truncated line in one of dmon', () => {
    const text = inferscope(setup, ['monitor', captures.query]);
    expect(text.status).toBe(0);
    expect(text.stdout).toContain('GPU 0 · NVIDIA H200');
    expect(text.stdout).toContain('idle');
    const cut = join(setup.scratch, 'cut.txt');
    writeFileSync(cut, readFileSync(captures.dmon).subarray(0, 1000));
    const result = inferscope(setup, ['monitor', cut, '--json', '--record', '--tag', 'h200']);
    const document = monitorDocumentSchema.parse(JSON.parse(result.stdout));
    expect(document.issues.map(({ code }) => code)).toContain('telemetry_cut_off');
    expect(document.data.devices[0]!.metrics.find(({ metric }) => metric === 'power_w')!.n).toBeGreaterThan(
      4,
    );
    expect(listSessions(setup)).toHaveLength(1);
    expect(unfinishedSessions(setup)).toEqual([]);
  });

  test('rejects a file that is not a recording, and invalid options', () => {
    const json = (...args: string[]) => inferscope(setup, ['monitor', '--json', ...args]);
    const notes = join(setup.scratch, 'notes.txt');
    writeFileSync(notes, 'nothing of the kind\n');
    expectFailure(json(notes), 5, 'E_FORMAT_UNKNOWN');
    expect(expectFailure(json('sleep', '3'), 2, 'E_USAGE').fix).toContain('--while -- sleep 3');
    expect(expectFailure(json('--while', 'sleep', '3'), 2, 'E_USAGE').what).toContain(
      'needs the whole command after --',
    );
    expectFailure(json('--while'), 2, 'E_USAGE');
    expectFailure(json('--hz', '0'), 2, 'E_USAGE');
    expectFailure(json('--hz', '51'), 2, 'E_USAGE');
    expectFailure(json('--duration', 'soon'), 2, 'E_USAGE');
    expectFailure(json('--pid', '4194305'), 2, 'E_USAGE');
    expectFailure(json('--frobnicate'), 2, 'E_USAGE');
    expect(expectFailure(json(captures.query, '--duration', '3s'), 2, 'E_USAGE').what).toContain(
      '--duration',
    );
  });
});
