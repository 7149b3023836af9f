import { expect, test } from 'vitest';
import type { ListedProgram } from '../session/list.js';
import { trendsOf } from './trends.js';

const model = { name: 'decoder', dtype: 'bfloat16', quantization: null };
const engine = { name: 'torch', version: '2.11' };

function session(id: string, value: number | null, setup: Record<string, unknown> = {}): ListedProgram {
  const { command = ['inferscope', 'profile'], gpu = 'H200', figure = 'decode', ...workload } = setup;
  return {
    listed: { id, started_at: id, subjects: ['profile'] },
    program: {
      command,
      hardware: { gpu_name: gpu },
      workload: { model, engine, batch_size: 1, ...workload },
    },
    figure: value === null ? null : { name: figure, value, unit: 'ms' },
  } as unknown as ListedProgram;
}

const trends = (...sessions: ListedProgram[]) =>
  Object.fromEntries(
    [...trendsOf(sessions, ({ hardware }) => hardware['gpu_name'] as string)].map(
      ([{ listed }, { index, values, change }]) => [listed.id, [index, values, change]],
    ),
  );

test('sessions of one workload have a trend in the order in which they ran', () => {
  const newer = { engine: { name: 'torch', version: '2.12' } };
  expect(trends(session('b', 5, newer), session('a', 10), session('c', 6), session('d', null))).toEqual({
    a: [0, [10, 5, 6], null],
    b: [1, [10, 5, 6], -0.5],
    c: [2, [10, 5, 6], expect.closeTo(0.2) as number],
  });
});

test('sessions with another batch size, GPU, dtype or kind of figure are another trend', () => {
  const otherPrograms = [
    { batch_size: 2 },
    { gpu: 'H100' },
    { model: { ...model, dtype: 'float16' } },
    { engine: { name: 'vllm', version: '2.11' } },
    { figure: 'decode under a profiler' },
  ];
  expect(
    trends(session('a', 10), ...otherPrograms.map((setup, index) => session(String(index), 9, setup))),
  ).toEqual({});
});

test('programs without a known model are grouped by command; imported files have no trend', () => {
  const program = { model: null, command: ['inferscope', 'profile', 'x.py'] };
  expect(trends(session('a', 10, program), session('b', 10, program))).toMatchObject({ b: [1, [10, 10], 0] });
  const file = { model: null, command: ['inferscope', 'import'] };
  expect(trends(session('a', 10, file), session('b', 10, file))).toEqual({});
});
