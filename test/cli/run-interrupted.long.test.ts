import { type ChildProcess } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { packageRoot } from '../../src/model/installation.js';
import { leftovers, place, sessions, start } from './profile-cli.js';

const setup = place();
afterAll(() => rmSync(setup.scratch, { recursive: true, force: true }));

const trace = join(packageRoot(), 'test/fixtures/kineto-torch2.11-h200/kineto-tiny-stack.json.gz');
/** A program that writes three traces where the torch probe would write them. */
const copies = `for i in 1 2 3; do cp ${trace} "$INFERSCOPE_TORCH_TRACE/kineto-0-$i.json.gz"; done`;
const run = (name: string, evaluator: string, script: string) =>
  start(setup, ['run', '--evaluator', evaluator, '--name', name, '--', 'sh', '-c', script]);

async function until(child: ChildProcess, text: string): Promise<void> {
  let output = '';
  child.stderr!.on('data', (chunk) => (output += String(chunk)));
  while (!output.includes(text)) await sleep(5);
}
const press = (child: ChildProcess) => process.kill(child.pid!, 'SIGINT');
const sessionNamed = (name: string) => sessions(setup).find((session) => session.name === name);

test('Ctrl-C before the program runs exits at once and leaves nothing', async () => {
  const { child, ended } = run('early', 'none', 'sleep 30');
  while (leftovers(setup).length === 0) await sleep(1);
  press(child);
  await ended;
  expect(leftovers(setup)).toEqual([]);
});

test('Ctrl-C after the program has exited: its traces are read and saved, without a message about waiting', async () => {
  const { child, ended } = run('read', 'torch', copies);
  await until(child, 'reading kineto');
  press(child);
  const { status, stdout, stderr } = await ended;
  expect(stderr).toContain('the program has exited; reading its captures');
  expect(stderr).not.toContain('waiting for the program');
  expect([status, sessionNamed('read')?.status], stderr).toEqual([130, 'complete']);
  expect(stdout).toContain('evidence, causes, every finding');
});

test('the second Ctrl-C saves the traces unread, the third leaves nothing', async () => {
  const twice = run('unread', 'torch', copies);
  await until(twice.child, 'reading kineto');
  press(twice.child);
  await until(twice.child, 'save them unread');
  press(twice.child);
  const { status, stderr } = await twice.ended;
  expect([status, sessionNamed('unread')?.status], stderr).toEqual([130, 'interrupted']);
  const folder = join(setup.home, 'sessions', sessionNamed('unread')!.id, 'artifacts');
  const files = readdirSync(folder, { recursive: true }).filter((name) => String(name).endsWith('.json.gz'));
  expect(files).toHaveLength(3);

  const thrice = run('left', 'torch', copies);
  await until(thrice.child, 'reading kineto');
  for (const words of ['save them unread', 'save nothing']) {
    press(thrice.child);
    await until(thrice.child, words);
  }
  press(thrice.child);
  await thrice.ended;
  expect([sessionNamed('left'), leftovers(setup)]).toEqual([undefined, []]);
});
