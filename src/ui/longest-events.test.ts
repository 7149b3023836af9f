import { expect, test } from 'vitest';
import { kernel, type Rows, sessionOf, stage, us } from '../facts/trace/test-hand.js';
import { longestEvents, slowestStages } from './longest-events.js';

const rows: Rows = {
  stages: [stage(1, 'prefill', 0, 100), stage(2, 'decode', 100, 200), stage(3, 'decode', 200, 350)],
  kernels: [
    kernel(1, 10, 60, { class: 'gemm' }),
    kernel(2, 110, 20, { class: 'gemm' }),
    kernel(3, 210, 30, { class: 'gemm' }),
    kernel(3, 250, 40, { class: 'norm' }),
    kernel(null, 400, 90, { class: 'gemm' }),
  ],
};

test('finds the longest event of each class in stages of each kind, and the slowest stage', async () => {
  const database = await (await sessionOf(rows)).connect();
  const [found] = await database.query<{ execution_id: string }>('SELECT DISTINCT execution_id FROM kernels');
  const { execution_id } = found!;
  const kinds = ['prefill', 'decode', 'outside'].map((kind) => ({ kind, execution_id }));
  const longest = await longestEvents(database, undefined, kinds);
  const starts = (name: string) =>
    kinds.map((kind) => {
      const event = longest('kernels', name, kind);
      return event && [event.start_ns / us, event.stage_end_ns === null ? null : event.stage_end_ns / us];
    });
  expect(starts('gemm')).toEqual([
    [10, 100],
    [210, 350],
    [400, null],
  ]);
  expect(starts('norm')).toEqual([undefined, [250, 350], [250, null]]);
  expect(longest('kernels', null, kinds[1]!)).toMatchObject({ start_ns: 250 * us });
  const slowest = await slowestStages(database);
  expect(slowest('decode', execution_id)).toMatchObject({ start_ns: 200 * us });
  expect(slowest('decode', 'another')).toBeUndefined();
  await database.close();
});
