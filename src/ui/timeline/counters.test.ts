import { expect, test } from 'vitest';
import { createSession } from '../../session/create.js';
import { openSession } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { summary } from '../../session/test-session.js';
import { countersOf } from './counters.js';
import { startTimeline } from './tracks.js';

test('thinned series keep their peaks; a constant one has its ends; cores are their maximum; no metric is left out', async () => {
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
    writer.sink.append('telemetry', { ...sample, scope: 'cpu4', metric: 'clock_mhz', value: i + 5 });
    writer.sink.append('telemetry', { ...sample, scope: 'host', metric: 'new_metric', value: i });
  }
  const { id } = await writer.finish(summary);
  const database = await (await openSession(id, home)).connect();
  try {
    const counters = await countersOf(database, await startTimeline(database, 'clean'));
    expect(counters.map(({ label }) => label)).toEqual([
      'GPU 0 · power (1 s mean)',
      'GPU 0 · SM clock',
      'host · utilization',
      '2 CPU cores, highest · core clock',
      'host · new metric',
    ]);
    const [power, clock, host, cores] = counters;
    expect(clock).toMatchObject({ unit: 'MHz', values: [1980, 1980], times: [0, 50 * 19_999] });
    expect([Math.min(...cores!.values), Math.max(...cores!.values)]).toEqual([5, 20_004]);
    expect([power!.label, power!.unit]).toEqual(['GPU 0 · power (1 s mean)', 'W']);
    expect(host!.label).toBe('host · utilization');
    expect(power!.values.length).toBeLessThanOrEqual(4002);
    expect([Math.min(...power!.values), Math.max(...power!.values)]).toEqual([100, 700]);
    expect(power!.times[power!.values.indexOf(700)]).toBe(50 * 7777);
  } finally {
    await database.close();
  }
});
