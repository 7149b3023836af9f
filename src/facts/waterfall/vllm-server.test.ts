import { expect, test } from 'vitest';
import { importSession } from '../../session/archive-import.js';
import { openSession } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { servingWaterfalls } from './serving-waterfalls.js';

const home = testHome();

// `bench serve` against vLLM 0.26 on an H200 with 4, 16 and 32 users, --max-num-seqs 16, server and client on one
// machine.
test("separates measured requests from the warm-up in a server's histograms", async () => {
  const { id } = await importSession('test/fixtures/vllm-0.26-h200/bench-serve.tgz', home);
  const session = await openSession(id, home);
  const database = await session.connect();
  const stages = await servingWaterfalls(session, database);
  await database.close();
  const ms = (users: number, bar: string) =>
    stages.find(({ point }) => point === `${users} users`)!.bars.find(({ id: barId }) => barId === bar)!.ms;
  // Over the loopback. The 32 warm-up requests waited less, and counting them gave 40 ms.
  for (const users of [4, 16, 32]) expect(ms(users, 'host.network')).toBeLessThan(10);
  // With 32 users, 16 wait while the other 16 are served, which takes as long as a request with 16 users.
  expect(ms(16, 'host.queue')).toBeLessThan(1);
  const requestMs = stages.find(({ point }) => point === '16 users')!.measured_ms.value!;
  expect(Math.abs(ms(32, 'host.queue') / requestMs - 1)).toBeLessThan(0.2);
  for (const { bars, measured_ms } of stages)
    expect(bars.reduce((sum, bar) => sum + bar.ms, 0)).toBeCloseTo(measured_ms.value!, 6);
});
