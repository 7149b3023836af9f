import { expect, test } from 'vitest';
import { readCallRoofs } from '../../facts/gemms/gemm-calls.js';
import { analyzeGemms } from '../../facts/gemms/gemms.js';
import { kernel, sessionOf, stage, us } from '../../facts/trace/test-hand.js';
import { fixture, imported } from '../../facts/trace/test-import.js';
import { testHome } from '../../session/test-folder.js';
import { eventDetails } from './details.js';
import { lanesIn } from './places.js';
import { rowsWithNames, storedRows } from './stored-rows.js';
import { readTimeline, startTimeline, trackClasses } from './tracks.js';

test('kernels have the share of the roofline that their GEMM reached; its minimum times sum to those of the GEMMs', async () => {
  const session = await imported(testHome(), 'kineto', fixture('kineto-torch2.11-h200/kineto-tiny.json.gz'));
  const database = await session.connect();
  try {
    const { gemms } = (await analyzeGemms(session)).data;
    const roofs = await readCallRoofs(session, database);
    const [row] = await database.query<{ roof_ns: number; start_ns: number }>(
      `SELECT sum(dur_ns * roof_share) AS roof_ns, min(start_ns) AS start_ns FROM (${rowsWithNames('kernels', roofs)}) WHERE roof_share IS NOT NULL`,
    );
    const expected = gemms.reduce((sum, { calls, roof }) => sum + calls * roof!.time_ns.value!, 0);
    expect(row!.roof_ns / expected).toBeCloseTo(1, 6);
    const timeline = await startTimeline(database, 'profiled');
    await readTimeline(database, timeline);
    const lanes = lanesIn(timeline);
    const lane = lanes.findIndex(({ track }) => track.table === 'kernels');
    const details = await eventDetails(storedRows(database, timeline, roofs), timeline, {
      lane,
      index: lanes[lane]!.lane.firstStartingFrom(row!.start_ns),
    });
    expect(details!.facts.find(({ name }) => name === 'roof share')!.text).toMatch(/^[\d.]+\s%$/);
  } finally {
    await database.close();
  }
});

test('a step of a warm-up is shown and explained as warm-up, as figures count it', async () => {
  const session = await sessionOf({
    stages: [
      stage(1, 'prefill', 0, 100, { warmup: true }),
      stage(2, 'other', 40, 60, { parent_id: 1, phase_id: 1, warmup: true }),
      stage(3, 'prefill', 200, 300),
    ],
    kernels: [
      kernel(2, 50, 10, { class: 'communication' }),
      kernel(3, 210, 10, { class: 'gemm' }),
      kernel(null, 400, 10, { class: 'copy' }),
    ],
  });
  const database = await session.connect();
  try {
    const timeline = await startTimeline(database, 'profiled');
    await readTimeline(database, timeline);
    const shown = new Map<string, string | null>();
    for (const [lane, { track, lane: events }] of lanesIn(timeline).entries())
      for (let index = 0; index < events.length; index++) {
        const details = await eventDetails(storedRows(database, timeline), timeline, { lane, index });
        const kind = trackClasses[track.table][events.class[index]!];
        shown.set(`${kind} at ${events.start[index]! / us}`, details!.explained);
      }
    expect(Object.fromEntries(shown)).toMatchObject({
      'warmup at 0': 'warmup stages:',
      // A range inside a step is none of the instances that figures count.
      'other at 40': null,
      'prefill at 200': 'prefill stages:',
      'communication at 50': 'warmup kernels:communication',
      'gemm at 210': 'prefill kernels:gemm',
      'copy at 400': 'outside kernels:copy',
    });
  } finally {
    await database.close();
  }
});
