import { afterAll, expect, test } from 'vitest';
import type { Row } from '../../../model/tables.js';
import { stage, us } from '../../../facts/trace/test-hand.js';
import { expectEvidence } from '../test-evidence.js';
import { closeAll, contextOf, fired, repeated, stepRows } from '../test-steps.js';
import { dataLoading } from './data-loading.js';

afterAll(closeAll);

const singleProcess = '_SingleProcessDataLoaderIter';

/** Steps of `stepUs` on the CPU, each after a load in the same thread. */
function loadedSteps(count: number, loadUs: number, stepUs: number, iterator = singleProcess) {
  const stages: Row<'stages'>[] = [];
  const ops: Row<'ops'>[] = [];
  let now = 0;
  for (let step = 0; step < count; step++) {
    const raw_name = `enumerate(DataLoader)#${iterator}.__next__`;
    stages.push(stage(2 * step, 'other', now, now + loadUs, { raw_name, step_index: null }));
    now += loadUs;
    stages.push(stage(2 * step + 1, 'prefill', now, now + stepUs, { step_index: step }));
    const times = { start_ns: now * us, dur_ns: stepUs * us, self_dur_ns: stepUs * us };
    ops.push({
      op_id: step + 1,
      name: 'aten::mm',
      class: 'gemm',
      op_type: 'cpu_op',
      stage_id: 2 * step + 1,
      ...times,
    });
    now += stepUs;
  }
  return contextOf({ stages, ops });
}

test('reports loads between steps, with the overlap that workers bring', async () => {
  const context = await loadedSteps(5, 9_000, 3_000);
  const draft = fired(await dataLoading.find(context));
  await expectEvidence(context.session, [draft]);
  expect(draft.at_stake_ms).toBeCloseTo(9, 6);
  // Four loads between five steps, in a run of 5 × 3 + 4 × 9 ms.
  expect(draft.share).toBeCloseTo(36 / 51, 6);
  // Three workers make a batch each 3 ms; one overlaps 3 ms.
  expect(draft.change.example).toContain('num_workers=3');
  expect(draft.gain).toMatchObject({ expected_ms: 9, low_ms: 3, high_ms: 9, per: 'pause' });
});

test('a program that has workers needs more of them: twice as many halve the time per batch', async () => {
  const context = await loadedSteps(5, 9_000, 3_000, '_MultiProcessingDataLoaderIter');
  const { gain, change } = fired(await dataLoading.find(context));
  expect(gain!.expected_ms).toBeCloseTo(6, 6);
  expect(change.example).toContain('twice as many');
});

test('a busy machine: what nearly every load takes is certain', async () => {
  const context = await loadedSteps(5, 9_000, 3_000);
  context.machine = { ...context.machine, busy: true };
  expect(fired(await dataLoading.find(context)).at_stake_ms).toBeCloseTo(9, 6);
});

test('short loads, and programs without a DataLoader', async () => {
  expect(await dataLoading.find(await loadedSteps(5, 100, 30_000))).toMatchObject({ outcome: 'not_fired' });
  const steps = stepRows('decode', 4, () => repeated(2, [{ kernel: 50 }]));
  expect(await dataLoading.find(await contextOf(steps))).toMatchObject({ outcome: 'not_applicable' });
});

test('with a GPU only the part in which it is idle counts', async () => {
  // Steps of 2 ms, after each a load of 5 ms, of which the device still works 1 ms.
  const rows = stepRows('prefill', 4, () => [
    { kernel: 2_000 },
    { kernel: 1_000 },
    { idle: { host: 4_000 } },
  ]);
  const stages = rows.stages.flatMap((step, i) => [
    { ...step, end_ns: step.start_ns! + 2_000 * us, device_start_ns: null, device_end_ns: null },
    stage(100 + i, 'other', i * 7_000 + 2_000, (i + 1) * 7_000, {
      raw_name: `enumerate(DataLoader)#${singleProcess}.__next__`,
      step_index: null,
    }),
  ]);
  const draft = fired(await dataLoading.find(await contextOf({ ...rows, stages })));
  expect(draft.at_stake_ms).toBeCloseTo(4, 6);
});
