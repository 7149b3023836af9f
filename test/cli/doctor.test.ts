import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { doctorIds } from '../../src/capture/doctor/judge.js';
import { doctorSchema } from '../../src/model/documents/doctor.js';
import { cli } from './run-cli.js';

// testFolder() has a longer path, with which the table would be wider than 80 columns.
const scratch = mkdtempSync(join(os.tmpdir(), 'inferscope-doctor-cli-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const home = join(scratch, 'home');

/** Runs the built binary without a Hugging Face login. */
function doctor(args: string[], env: NodeJS.ProcessEnv = {}, verb = 'doctor') {
  const inherited = { ...process.env };
  for (const name of ['HF_TOKEN', 'HUGGING_FACE_HUB_TOKEN', 'HF_TOKEN_PATH', 'FORCE_COLOR'])
    delete inherited[name];
  const run = spawnSync(process.execPath, [cli, verb, ...args], {
    encoding: 'utf8',
    env: { ...inherited, INFERSCOPE_HOME: home, HF_HOME: join(scratch, 'hf'), ...env },
  });
  return { status: run.status, stdout: run.stdout, stderr: run.stderr };
}

const parse = (stdout: string) => doctorSchema.parse(JSON.parse(stdout));

describe('on this machine', () => {
  test('prints a table within 80 columns, without color in a pipe, ending with what works', () => {
    const { status, stdout, stderr } = doctor([]);
    expect(status).toBe(0);
    expect(stderr).toBe('');
    for (const line of stdout.split('\n')) expect([...line].length).toBeLessThanOrEqual(80);
    expect(stdout).not.toContain('\u001B[');
    for (const title of ['This machine', 'NVIDIA', 'Python', 'Containers', 'AMD'])
      expect(stdout).toContain(title);
    const words = stdout.replaceAll(/\s+/g, ' ');
    expect(words).toContain(`Node ok ${process.versions.node}`);
    expect(words).toMatch(/embedded CPU engine: yes; NVIDIA capture: .*; PyTorch: .*\. $/);
  });

  test('--json is one document of the published schema; `setup` is the same command', () => {
    const { status, stdout } = doctor(['--json'], {}, 'setup');
    expect(status).toBe(0);
    const { data } = parse(stdout);
    expect(data.ok).toBe(true);
    expect(data.rows.map((row) => row.id)).toEqual(doctorIds);
    expect(data.rows.filter((row) => row.required).map((row) => row.id)).toEqual([
      'node',
      'duckdb',
      'home',
      'tmp',
      'disk',
    ]);
    expect(data.rows.find((row) => row.id === 'home')).toMatchObject({ status: 'ok', found: home });
    expect(existsSync(home)).toBe(false);
  });

  test('--require makes a missing row fail, exit 1, with its fix shown', () => {
    const { status, stdout } = doctor(['--require', 'gpu,nsys', 'hf_login', '--json']);
    const { data } = parse(stdout);
    const required = data.rows.filter((row) => row.required).map((row) => row.id);
    expect(required).toEqual(expect.arrayContaining(['gpu', 'nsys', 'hf_login', 'node']));
    expect(data.rows.find((row) => row.id === 'hf_login')!.status).toBe('missing');
    expect(status).toBe(1);
    const text = doctor(['--require', 'hf_login']);
    expect(text.status).toBe(1);
    expect(text.stdout).toMatch(/! Hugging Face login +missing/);
    expect(text.stdout).toContain('→ hf auth login');
    expect(text.stdout).toContain('Required and not ok (!): hf_login.');
  });
});

describe('problems are reported', () => {
  test('a home below a file: exit 1 and what to type', () => {
    const file = join(scratch, 'file');
    writeFileSync(file, 'x');
    const { status, stdout } = doctor([], { INFERSCOPE_HOME: join(file, 'home') });
    expect(status).toBe(1);
    expect(stdout).toMatch(/! Session folder +missing/);
    expect(stdout).toContain('export INFERSCOPE_HOME=');
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain('embedded CPU engine: no (Session folder)');
  });

  test('an empty PATH: no tool is found, but the main commands work', () => {
    const { status, stdout } = doctor(['--json'], { PATH: '' });
    const { data } = parse(stdout);
    const statusOf = (id: string) => data.rows.find((row) => row.id === id)!.status;
    expect(status).toBe(0);
    expect(statusOf('python')).toBe('missing');
    expect(statusOf('docker')).toBe('missing');
    expect(statusOf('engine')).toBe('ok');
  });

  test('an unknown row: exit 2 with the nearest id; an unknown flag: exit 2', () => {
    const { status, stdout, stderr } = doctor(['--require', 'nsis']);
    expect(status).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toContain('doctor has no row "nsis"');
    expect(stderr).toContain('--require nsys');
    expect(doctor(['--fix-everything']).status).toBe(2);
  });
});

test('a token is reported as present and printed nowhere', () => {
  const secret = 'hf_VeryPrivateTokenOfMine';
  for (const args of [[], ['--json']]) {
    const { stdout, stderr } = doctor(args, { HF_TOKEN: secret });
    expect(stdout).toContain('a token in the environment');
    expect(stdout + stderr).not.toContain('VeryPrivate');
  }
  const tokenFile = join(scratch, 'token');
  writeFileSync(tokenFile, secret);
  const { stdout } = doctor(['--json'], { HF_TOKEN_PATH: tokenFile });
  expect(parse(stdout).data.rows.find((row) => row.id === 'hf_login')).toMatchObject({
    status: 'ok',
    found: 'a token file',
  });
  expect(stdout).not.toContain('VeryPrivate');
});
