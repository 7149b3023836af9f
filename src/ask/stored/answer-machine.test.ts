import { expect, test } from 'vitest';
import { analyzeMonitor } from '../../facts/monitor/monitor.js';
import { sessionOf } from '../../facts/test-session.js';
import { testHome } from '../../session/test-folder.js';
import { sampledMetric } from './answer-machine.js';
import type { StoredFacts } from './stored-facts.js';

const home = testHome();

test('a sampled mean weighs each sample by its time, as the report of the session does', async () => {
  const sample = (seconds: number, value: number) => ({
    execution_id: 'monitor',
    t_ns: seconds * 1e9,
    scope: 'gpu0',
    metric: 'utilization_percent',
    value,
  });
  // 100 % for 1 s of 4 s.
  const telemetry = [sample(0, 100), sample(1, 0), sample(4, 0)];
  const session = await sessionOf(home, { telemetry }, { kind: 'monitor', roofline: null });
  const [gpu] = (await analyzeMonitor(session)).data.devices;
  expect(gpu!.metrics.find(({ metric }) => metric === 'utilization_percent')!.mean).toBe(25);
  const database = await session.connect();
  try {
    const question = { text: 'What is the GPU utilization?' };
    const answer = await sampledMetric({ database, question, session } as unknown as StoredFacts);
    expect(answer!.direct!.text).toBe(
      'GPU 0 is utilized 25 % on average over 4.00 s, 100 % at most (3 samples from start to end, loading and idle time included).',
    );
  } finally {
    await database.close();
  }
});
