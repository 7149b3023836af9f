import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterEach, expect, test, vi } from 'vitest';
import { testFolder } from '../session/test-folder.js';
import { commands } from './commands.js';
import { runImport } from './import-run.js';

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

async function runCommandLine(name: string, ...args: string[]): Promise<unknown> {
  const command = new Command(name);
  (await commands.find((commandEntry) => commandEntry.name === name)!.load()).define(command);
  return command.exitOverride().parseAsync(args, { from: 'user' });
}

const model = ['--model', 'llama-3.1-8b'];

test.each([
  ['estimate', [...model, '--gpu-memory-utilization', '0.5'], '--gpu-memory-utilization'],
  ['estimate', [...model, '--max-model-len', '4096'], '--max-model-len'],
  ['estimate', ['--model', 'llama-24m', '--engine', 'onnx', '--gpu', 'H100'], '--gpu'],
  ['estimate', [...model, '--stage', 'decode'], '--stage'],
  ['estimate', ['--fits', '--gpu', 'A10G', ...model], '--model'],
  ['estimate', [...model, '--context-len', '4096', '--input-len', '512'], '--input-len'],
  ['estimate', ['--fits', '--gpu', 'A10G', '--tensor-parallel-size', '2'], '--tensor-parallel-size'],
  ['estimate', ['--fits', '--engine', 'onnx'], '--engine'],
  ['estimate', ['--fits', '--gpu', 'A10G', '--dtype', 'int4'], '--dtype'],
  ['estimate', ['--fits', '--gpu', 'A10G', '--context-len', '4096', '--output-len', '64'], '--output-len'],
  ['estimate', [...model, '--layers', '--output-len', '64'], '--output-len'],
  ['estimate', [...model, '--layers', '--gpu', 'H100', '--engine', 'vllm'], '--gpu, --engine'],
  [
    'estimate',
    [...model, '--layers', '--stage', 'decode', '--context-len', '64', '--input-len', '64'],
    '--input-len',
  ],
  ['explain', ['x', '--what-if', 'int4', '--fail-on', 'high', '--limit', '2'], '--fail-on, --limit'],
  ['explain', ['x', '--verify', 'y', '--sql', '1'], '--sql'],
  ['explain', ['x', '--verify', 'y', '--rank', '1', '--verbose'], '--rank, --verbose'],
  ['explain', ['x', '--sql', '1', '--json'], '--json'],
  ['predict', [...model, '--gpu', 'H100', '--threads', '4'], '--threads'],
  ['report', ['--json', '--output', 'x.html'], '--output'],
  ['sweep', ['--retry-failed', '--config', 'models.yaml'], '--retry-failed'],
])('%s rejects an option without effect: %j', async (name, args, option) => {
  await expect(runCommandLine(name, ...args)).rejects.toMatchObject({
    code: 'E_USAGE',
    parts: { what: `${option} has no effect here` },
  });
});

test('a report in text format also goes to --output', async () => {
  const home = testFolder();
  vi.stubEnv('INFERSCOPE_HOME', home);
  const log = 'test/fixtures/nvidia-smi-580-h200/nvidia-smi-query.csv';
  await runImport([log], { tag: [], raw: false, quiet: true }, new AbortController().signal);
  const printed: string[] = [];
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => printed.push(String(text)) > 0);
  const file = join(home, 'report.md');
  await runCommandLine('report', '--format', 'md', '--output', file);
  expect(printed.join('').trim()).toBe(file);
  expect(readFileSync(file, 'utf8')).toContain('# ');
});
