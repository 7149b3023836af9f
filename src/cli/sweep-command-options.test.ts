import { Command } from 'commander';
import { expect, test } from 'vitest';
import { planGrid } from '../capture/sweep/plan-grid.js';
import { checkCommandOptions } from './sweep-command-options.js';
import { commands } from './commands.js';
import { defineSweep } from './sweep.js';

const sweep = new Command('sweep');
defineSweep(commands)(sweep);

const check = (command: string, axis = 'batch-size') =>
  checkCommandOptions(planGrid(command.split(' '), [{ name: axis, values: [1, 'x'] }]).runs, {
    sweep,
    commands,
  });

test.each([
  ['bench latency', 'foo', 'inferscope bench latency has no option --foo', 'An axis of --grid'],
  ['bench latency', 'batch-siz', 'inferscope bench latency has no option --batch-siz', 'mean --batch-size?'],
  ['bench latency --dry-run', 'foo', 'inferscope bench latency has no option --foo', 'An axis of --grid'],
  [
    'bench latency --dry-run',
    'dtype',
    'inferscope bench latency has no option --dry-run',
    'an option of sweep',
  ],
  [
    'estimate llama-24m',
    'batch-size',
    'inferscope estimate has no argument for llama-24m',
    'Usage: inferscope estimate [options]',
  ],
])('%s over %s is an error before the first run', async (command, axis, what, why) => {
  await expect(check(command, axis)).rejects.toMatchObject({
    code: 'E_USAGE',
    parts: { what, why: expect.stringContaining(why) },
  });
});

test.each([
  ['bench latency --repeats 2'],
  ['memory --model a --input-len 8 --output-len 8'],
  ['estimate --model a'],
  ['roofline --threads {batch-size}'],
  ['run --evaluator none -- program {batch-size} --any'],
])('%s: its options are known; values are not checked', async (command) => {
  await expect(check(command)).resolves.toBeUndefined();
});
