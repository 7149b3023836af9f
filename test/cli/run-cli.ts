import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { machineKey } from '../../src/capture/onnx/machine-roofline.js';
import { exampleRoofline, tinyConfig } from '../../src/facts/test-session.js';
import { document } from '../../src/model/document.js';
import { profileDocumentSchema } from '../../src/model/documents/profile.js';
import { packageRoot } from '../../src/model/installation.js';
import { testFolder } from '../../src/session/test-folder.js';

/** The built binary; INFERSCOPE_TEST_CLI names another build of it. */
export const cli = process.env['INFERSCOPE_TEST_CLI'] ?? join(packageRoot(), 'dist', 'cli.js');

/** A scratch folder with a home and two models: a `tiny` one that runs in milliseconds, and a `slow` one that can be interrupted. */
export interface TestSetup {
  scratch: string;
  home: string;
  tiny: string;
  slow: string;
  /** Another binary than that of the checkout. */
  cli?: string;
}

/** The home has a cached roofline, because measuring one takes ten seconds (roofline.long.test.ts measures it). */
export function createSetup(): TestSetup {
  const scratch = testFolder();
  const home = join(scratch, 'home');
  plantRoofline(home);
  const writeConfig = (name: string, changes: object = {}) => {
    mkdirSync(join(scratch, name));
    const path = join(scratch, name, 'config.json');
    writeFileSync(path, JSON.stringify({ ...tinyConfig, ...changes }));
    return path;
  };
  return {
    scratch,
    home,
    tiny: writeConfig('tiny'),
    slow: writeConfig('slow', {
      hidden_size: 256,
      num_hidden_layers: 8,
      intermediate_size: 768,
      vocab_size: 4096,
    }),
  };
}

/** Writes a roofline into the cache of a home, as if it had been measured. */
export function plantRoofline(home: string, threads = 1): void {
  const folder = join(home, 'cache', 'roofline');
  mkdirSync(folder, { recursive: true });
  const text = JSON.stringify(document('machine-roofline', '1.0', { ...exampleRoofline(), threads }));
  writeFileSync(join(folder, `${machineKey(threads)}.json`), text);
}

export interface CliResult {
  status: number | null;
  stdout: string;
  stderr: string;
}

/** The environment of a user without inferscope settings. */
export function environmentOf({ scratch, home }: TestSetup): NodeJS.ProcessEnv {
  const inherited = { ...process.env };
  for (const name of ['FORCE_COLOR', 'INFERSCOPE_HOME', 'INFERSCOPE_RECORD']) delete inherited[name];
  // Shells print a warning to stderr if the configured locale is not installed.
  for (const name of Object.keys(inherited)) if (/^LC_|^LANG/.test(name)) delete inherited[name];
  return { ...inherited, INFERSCOPE_HOME: home, XDG_CONFIG_HOME: join(scratch, 'no-config') };
}

/** Runs the binary and waits until it exits. */
export function inferscope(
  setup: TestSetup,
  args: string[],
  env: NodeJS.ProcessEnv = {},
  cwd = setup.scratch,
): CliResult {
  const { status, stdout, stderr } = spawnSync(process.execPath, [setup.cli ?? cli, ...args], {
    encoding: 'utf8',
    cwd,
    env: { ...environmentOf(setup), ...env },
    maxBuffer: 1 << 26,
  });
  return { status, stdout, stderr };
}

/** Arguments of the shortest complete profile. */
export function tinyProfileArgs({ tiny }: Pick<TestSetup, 'tiny'>, ...more: string[]): string[] {
  const sizes = ['--launches', '1', '--runs', '1', '--input-len', '8', '--output-len', '4'];
  return ['profile', '--model', tiny, '--threads', '1', ...sizes, ...more];
}

/** Runs a profile with --json: expects exit code 0 and one document of the published schema. */
export function profileJson(setup: TestSetup, args: string[]) {
  const { status, stdout, stderr } = inferscope(setup, [...args, '--json']);
  expect([status, stderr.match(/error.*/)?.[0]]).toEqual([0, undefined]);
  return profileDocumentSchema.parse(JSON.parse(stdout));
}

/** Expects a known failure: exit code, three parts on stderr, and the error document on stdout if --json was typed. */
export function expectFailure(
  { status, stdout, stderr }: CliResult,
  exitCode: number,
  code: string,
): { what: string; why: string; fix: string } {
  expect([status, stderr.includes(`(${code})`)], stderr).toEqual([exitCode, true]);
  const lines = stderr.trimEnd().split('\n');
  // Progress, and the output of a profiled program, precede the error.
  const first = lines.findLastIndex((line) => line.startsWith('error: '));
  expect(lines[first]).toContain(`(${code})`);
  // The lines after the first (why, and what to type) are indented.
  expect(lines.length).toBeGreaterThanOrEqual(first + 3);
  for (const line of lines.slice(first + 1)) expect(line).toMatch(/^ {2}\S/);
  expect(stderr).not.toMatch(/^\s+at .*\(.*:\d+:\d+\)/m);
  const document = JSON.parse(stdout) as { schema: string; data: Record<string, string> };
  expect(document).toMatchObject({ schema: 'inferscope/error/1.0', data: { code, exit_code: exitCode } });
  const { what = '', why = '', fix = '' } = document.data;
  for (const part of [what, why, fix]) expect(part.length).toBeGreaterThan(5);
  expect(stderr).toContain(what);
  return { what, why, fix };
}

/** The sessions of `session list`. Expects that each one is intact. */
export function listSessions(setup: TestSetup): { id: string; status: string; name: string | null }[] {
  const { stdout } = inferscope(setup, ['session', 'list', '--json']);
  const { data } = JSON.parse(stdout) as {
    data: { sessions: { id: string; status: string; name: string | null; broken: unknown }[] };
  };
  expect(data.sessions.filter((session) => session.broken !== null)).toEqual([]);
  if (data.sessions.length > 0) {
    expect(inferscope(setup, ['session', 'verify', '--all', '--json']).status).toBe(0);
  }
  return data.sessions;
}

/** Names of the folders of unfinished sessions. */
export function unfinishedSessions({ home }: TestSetup): string[] {
  const folder = join(home, 'sessions');
  return existsSync(folder) ? readdirSync(folder).filter((name) => name.startsWith('.')) : [];
}

/** Rows of a query on a session, read with `inferscope sql`. */
export function sqlRows<Row extends unknown[] = (string | number)[]>(
  setup: TestSetup,
  session: string,
  query: string,
): Row[] {
  const { status, stdout, stderr } = inferscope(setup, ['sql', session, query, '--json']);
  expect(status, stderr).toBe(0);
  return (JSON.parse(stdout) as { data: { rows: Row[] } }).data.rows;
}

/** The number of characters in the longest line. */
export function widestLine(text: string): number {
  return Math.max(...text.split('\n').map((line) => [...line].length));
}

/** Whether tests of full and read-only disks can mount a file system: this needs user namespaces, or root. Reports it if not. */
export function canMountDisks(): boolean {
  const { status } = spawnSync('unshare', ['-Urm', 'mount', '-t', 'tmpfs', 'tmpfs', testFolder()]);
  if (status !== 0)
    process.stderr.write(
      'SKIPPED: tests of full and read-only disks need `unshare -Urm` and tmpfs, which this machine refuses\n',
    );
  return status === 0;
}

/** Starts the binary in its own process group, as a terminal does. */
export function startCli(
  setup: TestSetup,
  args: string[],
): { child: ChildProcess; exit: Promise<CliResult> } {
  const child = spawn(process.execPath, [cli, ...args], {
    cwd: setup.scratch,
    env: environmentOf(setup),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const text = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk) => (text.stdout += String(chunk)));
  child.stderr.on('data', (chunk) => (text.stderr += String(chunk)));
  const exit = new Promise<CliResult>((resolve) => {
    child.once('close', (status) => resolve({ status, ...text }));
  });
  return { child, exit };
}

/** Starts a command that listens, and waits for the URL that it prints. */
export async function startServer(
  setup: TestSetup,
  args: string[],
): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(process.execPath, [cli, ...args], {
    cwd: setup.scratch,
    env: environmentOf(setup),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return { child, url: line.toString().trim() };
}

/** Starts `inferscope serve` with the tiny model on a free port. */
export function startServe(setup: TestSetup): Promise<{ child: ChildProcess; url: string }> {
  const model = ['--model', setup.tiny, '--threads', '1', '--context-len', '128'];
  return startServer(setup, ['serve', ...model, '--port', '0']);
}

export interface RecordLine {
  type: string;
  pid: number;
  launch?: number;
  warmup?: boolean;
}

/** Lines that the engine has recorded so far in an unfinished session. */
function readRecord(setup: TestSetup, execution: string): RecordLine[] {
  for (const name of unfinishedSessions(setup)) {
    const path = join(setup.home, 'sessions', name, 'scratch', `${execution}.jsonl`);
    if (!existsSync(path)) continue;
    const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as RecordLine);
  }
  return [];
}

/** Waits until the engine's record contains a matching line. */
export async function waitForRecord(
  setup: TestSetup,
  execution: string,
  matches: (line: RecordLine) => boolean,
): Promise<RecordLine> {
  for (let tries = 0; tries < 3000; tries++) {
    const line = readRecord(setup, execution).find(matches);
    if (line) return line;
    await sleep(10);
  }
  throw new Error('the engine recorded no matching line within 30 s');
}

/** Waits until a process has exited. */
export async function waitForExit(pid: number): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    // A zombie, which its parent has not waited for, also counts as dead.
    const state = existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, 'latin1') : ') Z';
    if (/\) Z/.test(state)) return;
    await sleep(100);
  }
  throw new Error(`process ${pid} is still running after 20 s`);
}
