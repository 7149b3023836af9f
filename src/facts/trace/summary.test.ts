import { describe, expect, test } from 'vitest';
import type { Row } from '../../model/tables.js';
import { gap, kernel, type Rows, sessionOf, stage, us } from './test-hand.js';
import { analyzeTrace } from './trace.js';

describe("the summary's figures", () => {
  test('a capture without ranges: its kernels count in one phase', async () => {
    const rows: Rows = {
      kernels: [kernel(null, 0, 10), kernel(null, 20, 10), kernel(null, 40, 10, { class: 'attention' })],
      gaps: [gap(10, { host: 10 }), gap(30, { launch_overhead: 10 })],
    };
    const { phases, classes } = (await analyzeTrace(await sessionOf(rows))).data;
    expect(phases).toHaveLength(1);
    expect(phases[0]).toMatchObject({ kind: 'outside', kernels: 3, launches: 3, kernel_ns: 30 * us });
    expect(phases[0]).toMatchObject({ busy_ns: 30 * us, idle_ns: 20 * us });
    expect(classes.find(({ kind }) => kind === 'outside')!.rows.map(({ count }) => count)).toEqual([2, 1]);
  });

  test('sampling after its step, not inside it, is one instance', async () => {
    const rows: Rows = {
      stages: [stage(1, 'decode', 0, 100), stage(2, 'sampling', 110, 130)],
      kernels: [kernel(1, 10, 20), kernel(2, 115, 5, { class: 'sampling' })],
    };
    const { phases, kernels } = (await analyzeTrace(await sessionOf(rows))).data;
    expect(phases.map(({ kind, instances, kernels: count }) => [kind, instances, count])).toEqual([
      ['decode', 1, 1],
      ['sampling', 1, 1],
    ]);
    expect(kernels[0]!.phases.map(({ kind, per_instance }) => [kind, per_instance])).toEqual([
      ['decode', 1],
      ['sampling', 1],
    ]);
  });

  /** Steps of 1 ms: 200 kernels of 1 µs, one every 5 µs, with 3 of the 4 µs between them host time. */
  const eager = (steps: number, more: (step: number) => Row<'stages'>): Rows => {
    const stages: Row<'stages'>[] = [];
    const kernels: Row<'kernels'>[] = [];
    const gaps: Row<'gaps'>[] = [];
    for (let step = 0; step < steps; step++) {
      stages.push(
        stage(step + 1, 'decode', 1000 * step, 1000 * step + 1000, { step_index: step, ...more(step) }),
      );
      for (let i = 0; i < 200; i++) {
        const startNs = 1000 * step + 5 * i;
        kernels.push(kernel(step + 1, startNs + 4, 1));
        gaps.push(gap(startNs, { host: 3, launch_overhead: 1 }));
      }
    }
    return { stages, kernels, gaps };
  };

  test("lists batch sizes separately, even if only the execution's own record has them", async () => {
    const capture = eager(4, (step) => ({ batch_size: step < 2 ? 1 : 8 }));
    const recordedHere = (await analyzeTrace(await sessionOf(capture))).data;
    const recorded: Rows = {
      ...eager(4, () => ({})),
    };
    recorded.stages!.push(
      ...[1, 1, 8, 8].map((batch_size, step) =>
        stage(step + 1, 'decode', 1000 * step, 1000 * step + 900, { capture_id: 'record', batch_size }),
      ),
    );
    const joined = (await analyzeTrace(await sessionOf(recorded))).data;
    // A record of two launches and a capture of one. Process, iteration and step match them.
    const launched: Rows = { ...eager(4, () => ({ pid: 7 })) };
    for (const [pid, sizes] of [
      [9, [64, 64, 64, 64]],
      [7, [1, 1, 8, 8]],
    ] as const) {
      launched.stages!.push(
        ...sizes.map((batch_size, step_index) => {
          const keys = { capture_id: 'record', pid, step_index, batch_size };
          return stage(10 * pid + step_index, 'decode', 1000 * step_index, 1000 * step_index + 900, keys);
        }),
      );
    }
    const launchedRanks = (await analyzeTrace(await sessionOf(launched))).data;
    for (const { phases } of [recordedHere, joined, launchedRanks]) {
      const [decode] = phases;
      expect(decode).toMatchObject({ kind: 'decode', instances: 4 });
      expect(
        decode!.by_batch.map((batch) => [batch.batch_size, batch.wall.count, batch.kernels, batch.idle_ns]),
      ).toEqual([
        [1, 2, 200, 800 * us],
        [8, 2, 200, 800 * us],
      ]);
    }
    expect(
      (await analyzeTrace(await sessionOf(eager(2, () => ({ batch_size: 4 }))))).data.phases[0]!.by_batch,
    ).toEqual([]);
  });
});
