import { afterAll, expect, test } from 'vitest';
import { closeAll, contextOf, fired, type Part, stepRows } from '../test-steps.js';
import { allocatorChurn } from './allocator-churn.js';
import { logitsToHost } from './logits-to-host.js';

afterAll(closeAll);

const copyPart = (kind: 'DtoH' | 'HtoD', bytes: number, us: number): Part => ({
  copy: us,
  more: {
    kind,
    bytes,
    ...(kind === 'DtoH'
      ? { src_kind: 'device', dst_kind: 'pageable' }
      : { src_kind: 'pageable', dst_kind: 'device' }),
  },
});

test('logits that go back to the device count with the copy from it, other copies do not', async () => {
  const gainMs = async (...back: Part[]) => {
    const parts = [{ kernel: 1000 }, copyPart('DtoH', 2 ** 20, 400), ...back];
    return fired(await logitsToHost.find(await contextOf(stepRows('decode', 4, () => parts)))).gain!
      .expected_ms;
  };
  const alone = await gainMs();
  expect((await gainMs(copyPart('HtoD', 2 ** 20, 300))) - alone).toBeCloseTo(0.3, 6);
  expect((await gainMs(copyPart('HtoD', 2 ** 19, 300))) - alone).toBeCloseTo(0, 6);
});

test('one prefill that allocates and frees nothing is a pool that grows; with a second one, or a release, it is churn', async () => {
  const outcome = async (instances: number, call: string) => {
    const rows = stepRows('prefill', instances, () => [
      { idle: { synchronization: 200, host: 20, launch_overhead: 6 } },
      { kernel: 500 },
      { call, from: 0, takes: 190 },
    ]);
    return (await allocatorChurn.find(await contextOf(rows))).outcome;
  };
  expect(await outcome(1, 'cudaMalloc')).toBe('not_fired');
  expect(await outcome(1, 'cudaFree')).toBe('fired');
  expect(await outcome(2, 'cudaMalloc')).toBe('fired');
});
