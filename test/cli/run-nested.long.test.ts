import process from 'node:process';
import { expect, test } from 'vitest';
import { cli, inferscope, createSetup, listSessions, sqlRows } from './run-cli.js';

const setup = createSetup();

test('run of an inferscope command saves its stages in both sessions, and reports its session', () => {
  const shape = ['--input-len', '8', '--output-len', '4', '--threads', '1', '--runs', '2', '--launches', '1'];
  const bench = [
    process.execPath,
    cli,
    'bench',
    'latency',
    '--model',
    setup.tiny,
    ...shape,
    '--name',
    'inside',
  ];
  const output = ['--output', setup.scratch];
  const run = ['run', '--evaluator', 'none', '--name', 'outside', '--'];
  const { status, stdout, stderr } = inferscope(setup, [...run, ...bench, ...output]);
  expect(status).toBe(0);
  expect(stdout).toContain('· bench · latency ·');
  const inside = listSessions(setup).find(({ name }) => name === 'inside')!;
  expect(stderr).toContain(`saved its own session (bench): inferscope explain ${inside.id}`);
  const stagesOf = (name: string) =>
    sqlRows(
      setup,
      name,
      `SELECT kind, iteration, step_index, warmup, batch_size, new_tokens, context_tokens_sum, end_ns - start_ns AS ns
      FROM stages ORDER BY start_ns`,
    );
  const inner = stagesOf('inside');
  // One load; a prefill and three decode steps for each of two timed repeats and for the warm-up.
  expect((inner.length - 1) % 4).toBe(0);
  expect(inner.length).toBeGreaterThanOrEqual(1 + 4 * 4);
  expect(stagesOf('outside')).toEqual(inner);
});
