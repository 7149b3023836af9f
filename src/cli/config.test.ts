import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { Command } from 'commander';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { testFolder } from '../session/test-folder.js';
import { define as defineBench } from './bench.js';
import { readConfigFile } from './config-file.js';
import { applyConfig } from './config.js';
import { define as defineMonitor } from './monitor.js';
import { define as defineProfile } from './profile.js';

const originalConfigHome = process.env['XDG_CONFIG_HOME'];
const folder = testFolder();
beforeEach(() => {
  process.env['XDG_CONFIG_HOME'] = folder;
});
afterEach(() => {
  if (originalConfigHome === undefined) delete process.env['XDG_CONFIG_HOME'];
  else process.env['XDG_CONFIG_HOME'] = originalConfigHome;
});

/** Options of a command once the user's file was applied; `typed` is parsed first. */
async function optionsAfterConfig(
  text: string,
  path: string[],
  typed: string[] = [],
): Promise<Record<string, unknown>> {
  mkdirSync(join(folder, 'inferscope'), { recursive: true });
  writeFileSync(join(folder, 'inferscope', 'config.yaml'), text);
  const program = new Command('inferscope').enablePositionalOptions();
  defineBench(program.command('bench'));
  defineMonitor(program.command('monitor'));
  defineProfile(program.command('profile'));
  // A subcommand with the same name as another command.
  program.command('session').command('profile').option('--model <name>');
  let found: Command = program;
  for (const name of path) found = found.commands.find((command) => command.name() === name)!;
  found.parseOptions(typed);
  await applyConfig(found);
  return found.opts();
}

test('each command has its own section; sizes are numbers or lists', async () => {
  const text = `bench:
  throughput: {batch_size: [1, 8], engine: transformers, engine_arg: [mode=eager, attn=sdpa], runs: 3}
  latency: {batch_size: 2}
monitor: {hz: 5, idle_for: 2s, record: true}
`;
  expect(await optionsAfterConfig(text, ['bench', 'throughput'])).toMatchObject({
    batchSize: [1, 8],
    engine: 'transformers',
    engineArg: ['mode=eager', 'attn=sdpa'],
    runs: 3,
  });
  expect(await optionsAfterConfig(text, ['bench', 'latency'])).toMatchObject({
    batchSize: [2],
    engine: 'onnx',
    runs: 5,
  });
  expect(await optionsAfterConfig(text, ['bench', 'throughput'], ['--runs', '7'])).toMatchObject({ runs: 7 });
  expect(await optionsAfterConfig(text, ['monitor'])).toMatchObject({ hz: 5, idleFor: 2000, record: true });
});

test('a section does not apply to a subcommand of the same name', async () => {
  const text = 'profile: {model: tiny}\n';
  expect(await optionsAfterConfig(text, ['profile'])).toMatchObject({ model: 'tiny' });
  expect(await optionsAfterConfig(text, ['session', 'profile'])).toEqual({});
});

test('unknown keys are rejected at every depth, with the nearest known key', () => {
  const errorOf = (text: string) => {
    try {
      readConfigFile('inferscope.yaml', text);
      return null;
    } catch (error) {
      return (error as { parts: { what: string; fix: string } }).parts;
    }
  };
  expect(errorOf('bench:\n  latency:\n    run: 3\n')).toMatchObject({
    what: 'inferscope.yaml:3:5: unknown key "bench.latency.run"',
    fix: expect.stringContaining('Did you mean "runs"?'),
  });
  expect(errorOf('bench: {latencys: {}}\n')!.fix).toContain('Did you mean "latency"?');
  // Nothing similar.
  expect(errorOf('bench: {foo: {}}\n')!.fix).toMatch(/^Known keys: .*latency/);
  // latency measures one shape.
  expect(errorOf('bench: {latency: {batch_size: [1, 2]}}\n')!.what).toContain('bench.latency.batch_size');
});
