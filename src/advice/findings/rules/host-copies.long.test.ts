import { afterAll, describe, expect, test } from 'vitest';
import { closeAll, contextOf, fired, type Part, repeated, stepRows } from '../test-steps.js';
import { allocatorChurn } from './allocator-churn.js';
import { hostCopies } from './host-copies.js';
import { launchBound } from './launch-bound.js';
import { logitsToHost } from './logits-to-host.js';
import { synchronizationEveryStep } from './synchronization-every-step.js';
import { firing, launch } from './test-host-rules.js';

afterAll(closeAll);

describe('memory and copies', () => {
  test('freeing through the driver waits for the device', async () => {
    const context = await contextOf(
      stepRows('prefill', 3, () => [
        ...repeated(4, [{ idle: { synchronization: 200, host: 20, launch_overhead: 6 } }, { kernel: 500 }]),
        ...[0, 1, 2, 3].map((i): Part => ({ call: 'cudaFree', from: i * 726, takes: 190 })),
      ]),
    );
    // The calls last 4 × 190 µs; the device is idle for 4 × 226, of which 4 × 0.45 remain.
    expect(fired(await allocatorChurn.find(context)).gain!.expected_ms).toBeCloseTo(0.76, 6);
    expect(await firing(context)).toEqual(['allocator_churn']);
  });

  const toDevice = { kind: 'HtoD', src_kind: 'pageable', dst_kind: 'device', bytes: 64 * 2 ** 20 };
  test('expects 64 MiB from pageable memory to overlap with 5 ms of kernels after pinning', async () => {
    const context = await contextOf(
      stepRows('prefill', 3, () => [
        { copy: 8000, more: toDevice },
        { idle: { launch_latency: 5 } },
        { kernel: 5000 },
      ]),
    );
    const finding = fired(await hostCopies.find(context));
    expect(finding.gain!.expected_ms).toBeCloseTo(8, 2);
    // Not overlapped, at 25 GB/s: 67 108 864 B take 2.684 ms.
    expect(finding.gain!.low_ms).toBeCloseTo(8.0046 - 2.6844, 2);
    expect(finding.evidence[0]!.rows[0]).toMatchObject({ memory: 'pageable', mib: 64, gb_per_s: 8.39 });
    expect(await firing(context)).toEqual(['host_copies']);
  });

  const logits = { kind: 'DtoH', src_kind: 'device', dst_kind: 'pageable' };
  test('reports logits of 16 MiB that are copied to the host, and host work on them', async () => {
    const context = await contextOf(
      stepRows('decode', 4, () => [
        { idle: { host: 900, launch_overhead: 5 } },
        { kernel: 1000 },
        { copy: 1500, more: { ...logits, bytes: 16 * 2 ** 20 } },
      ]),
    );
    const finding = fired(await logitsToHost.find(context));
    // The copy, the host work after it in three of four steps (the first has no copy before it), and 5 µs of waiting.
    // Sampling on the device takes 30 µs.
    expect(finding.at_stake_ms).toBeCloseTo(1.5 + (3 * 0.9) / 4, 1);
    expect(finding.gain!.expected_ms).toBeCloseTo(finding.at_stake_ms! - 0.03, 6);
  });

  test('a copy of token ids is not reported', async () => {
    const context = await contextOf(
      stepRows('decode', 4, () => [
        { idle: { host: 20 } },
        { kernel: 1000 },
        { copy: 2, more: { ...logits, bytes: 512 } },
      ]),
    );
    expect(await firing(context)).toEqual([]);
  });
});

describe('a call that blocks', () => {
  const waiting = (idle: Record<string, number>, busy: number) =>
    stepRows('decode', 4, () => [
      { call: 'cudaStreamSynchronize', from: 1, takes: 5000 },
      { idle },
      { kernel: busy },
      { idle: { synchronization: 800 } },
      { kernel: 100 },
    ]);

  test('a blocking call while the device works is a synchronization', async () => {
    expect(await firing(await contextOf(waiting({ launch_latency: 2 }, 5000)))).toContain(
      'synchronization_every_step',
    );
  });

  test('a blocking call while the device is idle is not: the driver blocks it', async () => {
    expect(await firing(await contextOf(waiting({ device_dependency: 5200 }, 10)))).not.toContain(
      'synchronization_every_step',
    );
  });
});

describe('waits between the launches of a step', () => {
  const kernel = (startNs: number): Part => ({ kernel: 3, more: { api_start_ns: startNs } });
  const experts = (waits: number) =>
    stepRows('decode', 4, (step) =>
      Array.from({ length: 100 }, (_, launched): Part[] => {
        const startNs = step * 1_700_000 + launched * 17_000;
        const wait: Part = { call: 'cudaStreamSynchronize', from: launched * 17 + 1, takes: 3 };
        return [...(launched % Math.floor(100 / waits) === 2 ? [wait] : []), launch, kernel(startNs)];
      }).flat(),
    );

  test('say that no graph can contain them, and leave the gain of launches to the launch-bound finding', async () => {
    const context = await contextOf(experts(20));
    const finding = fired(await synchronizationEveryStep.find(context));
    const launches = fired(await launchBound.find(context));
    expect(finding.title).toContain('which prevents a CUDA graph');
    expect(finding.at_stake_ms).toBeGreaterThan(launches.at_stake_ms!);
    expect(finding.gain!.expected_ms + launches.at_stake_ms!).toBeCloseTo(finding.at_stake_ms!, 6);
    expect(finding.gain!.what_if).toBe('no-sync');
  });

  test('include the cost of launches that only compute the value', async () => {
    /** Four GEMMs, a comparison, its reduction, a wait of 3 µs and a pause of 40 µs, ten times per step. */
    const steps = (compare: string) =>
      stepRows('decode', 4, (step) =>
        Array.from({ length: 60 }, (_, nth): Part[] => {
          const offset = nth * 17 + Math.floor(nth / 6) * 40;
          const name = ['a', 'a', 'a', 'a', compare, 'all'][nth % 6]!;
          const more = {
            api_start_ns: (step * 1420 + offset) * 1000,
            name,
            class: name === 'a' ? 'gemm' : 'elementwise',
          };
          const last = nth % 6 === 5;
          return [
            launch,
            { kernel: 3, more },
            ...(last
              ? [{ idle: { host: 40 } }, { call: 'cudaStreamSynchronize', from: offset + 6, takes: 3 }]
              : []),
          ];
        }).flat(),
      );
    const gainOf = async (compare: string) =>
      fired(await synchronizationEveryStep.find(await contextOf(steps(compare)))).gain!.expected_ms;
    // Pauses: 52 - 3 - 12 µs; each of the two launches takes 5 µs and follows a pause of 12 µs. No pause is known after the last launch of a step.
    expect(await gainOf('isfinite')).toBeCloseTo((9 * (3 + 37 + 2 * 17) + 3) / 1e3, 6);
    expect(await gainOf('a')).toBeCloseTo((9 * (3 + 37 + 17) + 3) / 1e3, 6);
  });

  test('are too few to prevent a graph of the work between them', async () => {
    const context = await contextOf(experts(3));
    expect((await synchronizationEveryStep.find(context)).outcome).toBe('not_fired');
    expect(fired(await launchBound.find(context)).change.details).toContain('between its launches');
  });
});
