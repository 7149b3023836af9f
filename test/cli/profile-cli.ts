import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { exampleRoofline, tinyConfig } from '../../src/facts/test-session.js';
import { machineKey } from '../../src/capture/onnx/machine-roofline.js';
import { document } from '../../src/model/document.js';
import { profileDocumentSchema } from '../../src/model/documents/profile.js';
import { packageRoot } from '../../src/model/installation.js';
import { testFolder } from '../../src/session/test-folder.js';

/** The built binary; INFERSCOPE_TEST_CLI names another build of it. */
export const cli = process.env['INFERSCOPE_TEST_CLI'] ?? join(packageRoot(), 'dist', 'cli.js');

/** A scratch folder with a home and models: `tiny` runs in milliseconds, `slow` long enough to be interrupted. */
export interface Place {
  scratch: string;
  home: string;
  tiny: string;
  slow: string;
  /** The binary is not that of the checkout. */
  cli?: string;
}

/** The home has a cached roofline, because measuring one takes ten seconds; test/cli/roofline.long.test.ts measures it. */
export function place(): Place {
  const scratch = testFolder();
  const home = join(scratch, 'home');
  plantRoofline(home);
  const config = (name: string, change: object = {}) => {
    mkdirSync(join(scratch, name));
    const path = join(scratch, name, 'config.json');
    writeFileSync(path, JSON.stringify({ ...tinyConfig, ...change }));
    return path;
  };
  return {
    scratch,
    home,
    tiny: config('tiny'),
    slow: config('slow', {
      hidden_size: 256,
      num_hidden_layers: 8,
      intermediate_size: 768,
      vocab_size: 4096,
    }),
  };
}

export function plantRoofline(home: string, threads = 1): void {
  const folder = join(home, 'cache', 'roofline');
  mkdirSync(folder, { recursive: true });
  const text = JSON.stringify(document('machine-roofline', '1.0', { ...exampleRoofline(), threads }));
  writeFileSync(join(folder, `${machineKey(threads)}.json`), text);
}

export interface Ran {
  status: number | null;
  stdout: string;
  stderr: string;
}

/** Environment of a user without inferscope settings. */
export function environment({ scratch, home }: Place): NodeJS.ProcessEnv {
  const inherited = { ...process.env };
  for (const name of ['FORCE_COLOR', 'INFERSCOPE_HOME', 'INFERSCOPE_RECORD']) delete inherited[name];
  // Shells print a warning to stderr if the configured locale is not installed.
  for (const name of Object.keys(inherited)) if (/^LC_|^LANG/.test(name)) delete inherited[name];
  return { ...inherited, INFERSCOPE_HOME: home, XDG_CONFIG_HOME: join(scratch, 'no-config') };
}

export function inferscope(
  setup: Place,
  args: string[],
  env: NodeJS.ProcessEnv = {},
  cwd = setup.scratch,
): Ran {
  const { status, stdout, stderr } = spawnSync(process.execPath, [setup.cli ?? cli, ...args], {
    encoding: 'utf8',
    cwd,
    env: { ...environment(setup), ...env },
    maxBuffer: 1 << 26,
  });
  return { status, stdout, stderr };
}

/** Arguments of the shortest complete profile. */
export function tinyArgs({ tiny }: Pick<Place, 'tiny'>, ...more: string[]): string[] {
  const sizes = ['--launches', '1', '--runs', '1', '--input-len', '8', '--output-len', '4'];
  return ['profile', '--model', tiny, '--threads', '1', ...sizes, ...more];
}

/** Runs with --json: expects exit code 0 and one document of the published schema. */
export function profileJson(setup: Place, args: string[]) {
  const { status, stdout, stderr } = inferscope(setup, [...args, '--json']);
  expect([status, stderr.match(/error.*/)?.[0]]).toEqual([0, undefined]);
  return profileDocumentSchema.parse(JSON.parse(stdout));
}

/** Expects a known failure: exit code, three parts on stderr, and the error document on stdout if --json was typed. */
export function expectFailure(
  ran: Ran,
  exitCode: number,
  code: string,
): { what: string; why: string; fix: string } {
  const { status, stdout, stderr } = ran;
  expect([status, stderr.includes(`(${code})`)], stderr).toEqual([exitCode, true]);
  const lines = stderr.trimEnd().split('\n');
  const first = lines.findIndex((line) => line.startsWith('error: '));
  expect(lines[first]).toContain(`(${code})`);
  // The lines after the first (why, and what to type) are indented.
  expect(lines.length).toBeGreaterThanOrEqual(first + 3);
  for (const line of lines.slice(first + 1)) expect(line).toMatch(/^ {2}\S/);
  expect(stderr).not.toMatch(/^\s+at .*\(.*:\d+:\d+\)/m);
  const found = JSON.parse(stdout) as { schema: string; data: Record<string, string> };
  expect(found).toMatchObject({ schema: 'inferscope/error/1.0', data: { code, exit_code: exitCode } });
  const { what = '', why = '', fix = '' } = found.data;
  for (const part of [what, why, fix]) expect(part.length).toBeGreaterThan(5);
  expect(stderr).toContain(what);
  return { what, why, fix };
}

/** Sessions as in `session list`; each one is intact. */
export function sessions(setup: Place): { id: string; status: string; name: string | null }[] {
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

/** Folders of unfinished sessions. */
export function leftovers({ home }: Place): string[] {
  const folder = join(home, 'sessions');
  return existsSync(folder) ? readdirSync(folder).filter((name) => name.startsWith('.')) : [];
}

export interface Running {
  child: ChildProcess;
  ended: Promise<Ran>;
}

/** Starts the binary in its own process group, as a terminal does. */
export function start(setup: Place, args: string[]): Running {
  const child = spawn(process.execPath, [cli, ...args], {
    cwd: setup.scratch,
    env: environment(setup),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const text = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk) => (text.stdout += String(chunk)));
  child.stderr.on('data', (chunk) => (text.stderr += String(chunk)));
  const ended = new Promise<Ran>((resolve) => {
    child.once('close', (status) => resolve({ status, ...text }));
  });
  return { child, ended };
}

export interface RecordLine {
  type: string;
  pid: number;
  launch?: number;
  warmup?: boolean;
}

/** Lines that the engine has recorded so far in an unfinished session. */
function recorded(setup: Place, execution: string): RecordLine[] {
  for (const name of leftovers(setup)) {
    const path = join(setup.home, 'sessions', name, 'scratch', `${execution}.jsonl`);
    if (!existsSync(path)) continue;
    const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as RecordLine);
  }
  return [];
}

/** Waits until the engine's record contains a matching line. */
export async function untilRecorded(
  setup: Place,
  execution: string,
  isIt: (line: RecordLine) => boolean,
): Promise<RecordLine> {
  for (let tries = 0; tries < 3000; tries++) {
    const found = recorded(setup, execution).find(isIt);
    if (found) return found;
    await sleep(10);
  }
  throw new Error('the engine did not record what was waited for within 30 s');
}

export async function untilDead(pid: number): Promise<void> {
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
  throw new Error(`process ${pid} is alive after 20 s`);
}
