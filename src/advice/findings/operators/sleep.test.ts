import { afterAll, expect, test } from 'vitest';
import type { Row } from '../../../model/tables.js';
import { stage, us } from '../../../facts/trace/test-hand.js';
import { hostBound } from '../rules/host-bound.js';
import { closeAll, contextOf, fired } from '../test-steps.js';

afterAll(closeAll);

const steps = 10;
const stepUs = 5_000;

/** Steps of 5 ms on a busy machine, of which 6 of 10 have a gap of 4 ms; samples of the main thread and of the program. */
async function stepsWith({ onCore, runDelay, cores }: Record<'onCore' | 'runDelay' | 'cores', number>) {
  const stages: Row<'stages'>[] = [];
  const ops: Row<'ops'>[] = [];
  const telemetry: Row<'telemetry'>[] = [];
  for (let step = 0; step < steps; step++) {
    const start = step * stepUs;
    stages.push(stage(step, 'decode', start, start + stepUs, { step_index: step }));
    const operator = (name: string, from: number, durationUs: number) => ({
      op_id: ops.length + 1,
      name,
      class: 'gemm',
      op_type: 'cpu_op',
      stage_id: step,
      start_ns: (start + from) * us,
      dur_ns: durationUs * us,
      self_dur_ns: durationUs * us,
    });
    ops.push(operator('aten::mm', 0, step < 6 ? 500 : 4_500));
    ops.push(operator('aten::add', 4_500, 500));
  }
  for (let sample = 0; sample <= steps; sample++) {
    const put = (scope: string, metric: string, value: number): unknown =>
      telemetry.push({ t_ns: sample * stepUs * us, scope, metric, value });
    put('thread7', 'on_core_percent', onCore);
    put('thread7', 'run_delay_percent', runDelay);
    put('process', 'cores_busy', cores);
  }
  const context = await contextOf({ stages, ops, telemetry });
  context.machine = { ...context.machine, busy: true };
  return fired(await hostBound.find(context));
}

test('a thread that sleeps while another one computes waits for the interpreter lock, on a busy machine too', async () => {
  const draft = await stepsWith({ onCore: 60, runDelay: 10, cores: 0.9 });
  expect(draft.noise).toBe(false);
  // It sleeps for 30 % of 5 ms; the gaps take 0.6 × 4 ms, the other thread 0.3 of a core.
  expect(draft.at_stake_ms).toBeCloseTo(1.5, 6);
  expect(draft.cause).toContain(
    'The main thread sleeps for 1.50 ms of it while other threads of the program compute for 1.50 ms',
  );
  expect(draft.change.example).toContain('multiprocessing.Process');
});

test('a thread that sleeps alone waits for data or a timer', async () => {
  const draft = await stepsWith({ onCore: 60, runDelay: 10, cores: 0.6 });
  expect(draft.noise).toBe(false);
  expect(draft.cause).not.toContain('hold the interpreter lock');
});

test('a thread that is ready to run is delayed by other processes: withheld on a busy machine', async () => {
  expect((await stepsWith({ onCore: 60, runDelay: 40, cores: 0.6 })).noise).toBe(true);
});
