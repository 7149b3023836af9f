import { expect, test } from 'vitest';
import { createSession } from '../../session/create.js';
import { openSession } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { summary } from '../../session/test-session.js';
import { countersOf } from './counters.js';
import { startTimeline } from './tracks.js';

test('thinned series keep their peaks; constant series and single cores are left out', async () => {
  const home = testHome();
  const writer = await createSession({ home, label: 'sampled', kind: 'run' });
  const keys = { execution_id: 'clean', capture_id: 'c0', host: 'h', pid: 7, rank: 0 };
  const stage = { tid: 1, stage_id: 0, phase_id: 0, kind: 'decode', raw_name: 'decode' };
  writer.sink.append('stages', { ...keys, ...stage, start_ns: 1000, end_ns: 1_001_000 });
  for (let i = 0; i < 20_000; i++) {
    const sample = { ...keys, t_ns: 1000 + 50 * i };
    const power = i === 7777 ? 700 : 100 + (i % 3);
    writer.sink.append('telemetry', {
      ...sample,
      scope: 'host',
      metric: 'utilization_percent',
      value: i % 2,
    });
    writer.sink.append('telemetry', { ...sample, scope: 'gpu0', metric: 'power_w', value: power });
    writer.sink.append('telemetry', { ...sample, scope: 'gpu0', metric: 'sm_clock_mhz', value: 1980 });
    writer.sink.append('telemetry', { ...sample, scope: 'cpu3', metric: 'clock_mhz', value: i });
  }
  const { id } = await writer.finish(summary);
  const database = await (await openSession(id, home)).connect();
  try {
    const [power, host, ...rest] = await countersOf(database, await startTimeline(database, 'clean'));
    expect(rest).toEqual([]);
    expect([power!.label, power!.unit]).toEqual(['GPU 0 · power (1 s mean)', 'W']);
    expect(host!.label).toBe('host · utilization');
    expect(power!.values.length).toBeLessThanOrEqual(4002);
    expect([Math.min(...power!.values), Math.max(...power!.values)]).toEqual([100, 700]);
    expect(power!.times[power!.values.indexOf(700)]).toBe(50 * 7777);
  } finally {
    await database.close();
  }
});
