import { expect, test } from 'vitest';
import { testExplain } from '../../views/test-explain.js';
import type { Framework } from '../findings/framework.js';
import { nextSteps } from './next-steps.js';

const { stages, findings } = testExplain().data;
const commands = (framework: Framework | null, withoutGpu = false, stageList = stages): string[] =>
  nextSteps(stageList, findings, { framework, withoutGpu, session: 'b1' }).map(({ command }) => command);
const cleanRunCommand = /--evaluator none,nsys|^inferscope bench latency --engine vllm/;
const profiled = stages.map((stage) => ({
  ...stage,
  source: 'trace' as const,
  clean_ms: { value: null, reason: { code: 'no_clean_stage' as const, text: 'none' } },
}));

test('suggests a clean run if only a profiled time is known, except for vLLM, where a benchmark times the steps', () => {
  const clean = { value: 12, unit: 'ms', source: 'a clean execution' };
  expect(commands(null, false, profiled).filter((command) => cleanRunCommand.test(command))).toEqual([
    'inferscope run --evaluator none,nsys -- <command>',
  ]);
  expect(commands('vllm', false, profiled).filter((command) => cleanRunCommand.test(command))).toEqual([
    expect.stringMatching(/^inferscope bench latency --engine vllm /),
  ]);
  const timed = profiled.map((stage) => ({ ...stage, clean_ms: clean }));
  expect(commands(null, false, timed).some((command) => cleanRunCommand.test(command))).toBe(false);
});

test('without a GPU it suggests a look at the machine first, and no capture twice', () => {
  const suggested = commands(null, true, profiled);
  expect(suggested).toContain('inferscope doctor');
  expect(suggested.some((command) => cleanRunCommand.test(command))).toBe(false);
  expect(new Set(suggested).size).toBe(suggested.length);
});
