import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, test } from 'vitest';

// The part in the container, run on this machine: its handling of files, signals and the record needs no Docker.
const agent = join('python', 'inferscope_probe', 'inferscope_container.py');
// The interpreter itself, not a launcher of a version manager, which takes half a second.
const executable = spawnSync('python3', ['-c', 'import sys; print(sys.executable)'], { encoding: 'utf8' });
const python = executable.status === 0 ? executable.stdout.trim() : '';
const root = mkdtempSync(join(tmpdir(), 'inferscope-agent-'));
afterAll(() => rmSync(root, { recursive: true }));

let placesMade = 0;
/** A folder as in the container, and one of the host with a program and an order that refers to it. */
function places(program: string): { folder: string; scratch: string; map: string } {
  const folder = join(root, `container-${placesMade}`);
  const scratch = join(root, `host-${placesMade++}`);
  mkdirSync(join(folder, 'files'), { recursive: true });
  mkdirSync(join(scratch, 'launch'), { recursive: true });
  writeFileSync(join(scratch, 'launch', 'program.py'), program);
  writeFileSync(
    join(scratch, 'launch', 'order.json'),
    JSON.stringify({ model: join(scratch, 'launch', 'm') }),
  );
  return { folder, scratch, map: JSON.stringify({ [scratch]: join(folder, 'files') }) };
}
const call = (...args: string[]) => spawnSync(python, ['-B', agent, ...args], { encoding: 'utf8' });
function run({ folder, scratch, map }: ReturnType<typeof places>) {
  const tar = spawnSync('tar', ['-C', scratch, '-cf', '-', 'launch']).stdout;
  const file = (name: string) => join(scratch, 'launch', name);
  const args = ['-B', agent, 'run', folder, map, '--files', '--', file('program.py'), file('order.json')];
  const child = spawn(python, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdin.end(tar);
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (data) => (stdout += String(data)));
  child.stderr.on('data', (data) => (stderr += String(data)));
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  return { ended, stdout: () => stdout, stderr: () => stderr };
}
const until = async (what: () => boolean) => {
  while (!what()) await sleep(20);
};

describe.skipIf(python === '')('the agent of a container', () => {
  test('runs with the paths of host files replaced, and passes on output and exit code', async () => {
    const place = places(
      [
        'import json, os, sys',
        'print(json.load(open(sys.argv[1]))["model"])',
        'print("talk", file=sys.stderr)',
        'open(os.environ["INFERSCOPE_RECORD"], "a").write("{\\"v\\": 1}\\n")',
        'sys.exit(7)',
      ].join('\n'),
    );
    expect(call('ready', place.folder).status).toBe(0);
    const { ended, stdout, stderr } = run(place);
    expect(await ended).toBe(7);
    expect(stdout().trim()).toBe(join(place.folder, 'files', 'launch', 'm'));
    expect(stderr()).toContain('talk');
    expect(readFileSync(join(place.folder, 'engine.log'), 'utf8')).toContain('talk');
    const followed = call('follow', place.folder).stdout.trim().split('\n');
    expect(followed[0]).toMatch(/^#pid \d+$/);
    expect(followed.slice(1)).toEqual(['{"v": 1}']);
  });

  test('a killed program exits with the code of a shell', async () => {
    const place = places('import os, signal\nos.kill(os.getpid(), signal.SIGKILL)');
    const { ended } = run(place);
    expect(await ended).toBe(137);
  });

  test('stop reaches the program and finally all its descendants; clean leaves nothing', async () => {
    const place = places(
      [
        'import os, signal, subprocess, sys, time',
        'signal.signal(signal.SIGINT, lambda *_: open("asked", "w").close())',
        'child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])',
        'open("child", "w").write(str(child.pid))',
        'while True: time.sleep(0.05)',
      ].join('\n'),
    );
    const { ended } = run(place);
    const files = join(place.folder, 'files');
    await until(() => existsSync(join(files, 'child')) && readFileSync(join(files, 'child'), 'utf8') !== '');
    const childPid = readFileSync(join(files, 'child'), 'utf8');
    call('stop', place.folder, 'INT');
    await until(() => existsSync(join(files, 'asked')));
    call('clean', place.folder);
    expect(await ended).toBe(137);
    expect(existsSync(place.folder)).toBe(false);
    await until(
      () =>
        !existsSync(`/proc/${childPid}`) || readFileSync(`/proc/${childPid}/stat`, 'utf8').includes(') Z '),
    );
  });

  test('leaves a process alone that only has the same pid as an old run', async () => {
    const { folder } = places('');
    const otherProcess = spawn('sleep', ['600']);
    writeFileSync(join(folder, 'child.pid'), String(otherProcess.pid));
    call('clean', folder);
    expect(otherProcess.exitCode).toBeNull();
    expect(existsSync(`/proc/${otherProcess.pid}`)).toBe(true);
    otherProcess.kill();
  });
});
