import { type ChildProcess } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { unfinishedSessions, createSetup, listSessions, startCli } from './run-cli.js';
import { fixture } from './capture-files.js';

const setup = createSetup();

const trace = fixture('kineto-torch2.11-h200/kineto-tiny-stack.json.gz');
/** A program that writes three traces where the torch probe would write them. */
const writeTraces = `for i in 1 2 3; do cp ${trace} "$INFERSCOPE_TORCH_TRACE/kineto-0-$i.json.gz"; done`;
const run = (name: string, evaluator: string, script: string) =>
  startCli(setup, ['run', '--evaluator', evaluator, '--name', name, '--', 'sh', '-c', script]);

/** Waits until stderr contains the text. */
async function waitForStderr(child: ChildProcess, text: string): Promise<void> {
  let output = '';
  child.stderr!.on('data', (chunk) => (output += String(chunk)));
  while (!output.includes(text)) await sleep(5);
}
const pressControlC = (child: ChildProcess) => process.kill(child.pid!, 'SIGINT');
const sessionNamed = (name: string) => listSessions(setup).find((session) => session.name === name);

test('Ctrl-C before the program runs exits at once and leaves nothing', async () => {
  const { child, exit } = run('early', 'none', 'sleep 30');
  while (unfinishedSessions(setup).length === 0) await sleep(1);
  pressControlC(child);
  await exit;
  expect(unfinishedSessions(setup)).toEqual([]);
});

test('Ctrl-C after the program has exited: its traces are read and saved, without a message about waiting', async () => {
  const { child, exit } = run('read', 'torch', writeTraces);
  await waitForStderr(child, 'reading kineto');
  pressControlC(child);
  const { status, stdout, stderr } = await exit;
  expect(stderr).toContain('the program has exited; reading its captures');
  expect(stderr).not.toContain('waiting for the program');
  expect([status, sessionNamed('read')?.status], stderr).toEqual([130, 'complete']);
  expect(stdout).toContain('evidence, causes');
});

test('a second Ctrl-C saves the traces unread, and a third saves nothing', async () => {
  const twice = run('unread', 'torch', writeTraces);
  await waitForStderr(twice.child, 'reading kineto');
  pressControlC(twice.child);
  await waitForStderr(twice.child, 'save them unread');
  pressControlC(twice.child);
  const { status, stderr } = await twice.exit;
  expect([status, sessionNamed('unread')?.status], stderr).toEqual([130, 'interrupted']);
  const folder = join(setup.home, 'sessions', sessionNamed('unread')!.id, 'artifacts');
  const files = readdirSync(folder, { recursive: true }).filter((name) => String(name).endsWith('.json.gz'));
  expect(files).toHaveLength(3);

  const thrice = run('unsaved', 'torch', writeTraces);
  await waitForStderr(thrice.child, 'reading kineto');
  for (const message of ['save them unread', 'save nothing']) {
    pressControlC(thrice.child);
    await waitForStderr(thrice.child, message);
  }
  pressControlC(thrice.child);
  await thrice.exit;
  expect([sessionNamed('unsaved'), unfinishedSessions(setup)]).toEqual([undefined, []]);
});
