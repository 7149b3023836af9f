import { expect, test } from 'vitest';
import { testExplain } from '../../views/test-explain.js';
import { nextSteps } from './next-steps.js';

const { stages, findings } = testExplain().data;
const commands = (stageList = stages, program: Partial<Parameters<typeof nextSteps>[2]> = {}): string[] =>
  nextSteps(stageList, findings, { hasCounters: false, session: 'b1', ...program }).map(
    ({ command }) => command,
  );
const cleanRunCommand = /--evaluator none,nsys/;
const profiled = stages.map((stage) => ({
  ...stage,
  source: 'trace' as const,
  clean_ms: { value: null, reason: { code: 'no_clean_stage' as const, text: 'none' } },
}));

test('suggests a clean run if only a profiled time is known, and a timeline if only counters are', () => {
  const clean = { value: 12, unit: 'ms', source: 'a clean execution' };
  expect(commands(profiled).filter((command) => cleanRunCommand.test(command))).toEqual([
    'inferscope run --evaluator none,nsys -- <command>',
  ]);
  expect(commands([], { hasCounters: true })).toContain(
    'inferscope run --evaluator none,nsys,ncu -- <command>',
  );
  expect(commands([]).some((command) => cleanRunCommand.test(command))).toBe(false);
  const timed = profiled.map((stage) => ({ ...stage, clean_ms: clean }));
  expect(commands(timed).some((command) => cleanRunCommand.test(command))).toBe(false);
});

test('suggests no second run without a profiler where the first gives no time of the stage', () => {
  const ahead = profiled.map((stage) => ({
    ...stage,
    clean_ms: { value: null, reason: { code: 'runs_ahead' as const, text: 'ahead' } },
  }));
  expect(commands(ahead).some((command) => cleanRunCommand.test(command))).toBe(false);
});

test('without a GPU it suggests a look at the machine first, and no capture twice', () => {
  const suggested = commands(profiled.map((stage) => ({ ...stage, source: 'operators' as const })));
  expect(suggested).toContain('inferscope doctor');
  expect(suggested.some((command) => cleanRunCommand.test(command))).toBe(false);
  expect(new Set(suggested).size).toBe(suggested.length);
});

test('asks for the class of an unknown kernel by its name', () => {
  const [lead, ...others] = stages;
  const bar = lead!.bars[0]!;
  const part = { label: 'unknown: a<b>', kernel: 'a<b>', ms: bar.ms / 2, count: 1 };
  const withUnknown = [{ ...lead!, bars: [{ ...bar, parts: [part] }, ...lead!.bars.slice(1)] }, ...others];
  expect(commands(withUnknown)).toContain("inferscope session set b1 --kernel-class 'a<b>=<class>'");
  expect(commands().some((command) => command.includes('--kernel-class'))).toBe(false);
});
