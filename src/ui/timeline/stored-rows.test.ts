import { expect, test } from 'vitest';
import { readCallRoofs } from '../../facts/gemms/gemm-calls.js';
import { analyzeGemms } from '../../facts/gemms/gemms.js';
import { fixture, imported } from '../../facts/trace/test-import.js';
import { testHome } from '../../session/test-folder.js';
import { eventDetails } from './details.js';
import { lanesIn } from './places.js';
import { rowsWithNames, storedRows } from './stored-rows.js';
import { readTimeline, startTimeline } from './tracks.js';

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
