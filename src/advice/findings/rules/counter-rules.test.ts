import { afterAll, expect, test } from 'vitest';
import type { Row } from '../../../model/tables.js';
import type { SessionDatabase } from '../../../session/query.js';
import { testHome } from '../../../session/test-folder.js';
import { sessionOf } from '../../../facts/test-session.js';
import { findingContext } from '../findings.js';
import type { RuleOutcome } from '../rule.js';
import { bankConflicts } from './bank-conflicts.js';
import { l2HitRate } from './l2-hit-rate.js';
import { lowOccupancy } from './low-occupancy.js';
import { uncoalescedAccess } from './uncoalesced-access.js';

const home = testHome();
const open: SessionDatabase[] = [];
afterAll(async () => {
  for (const database of open) await database.close();
});

const gib = 2 ** 30;

/** One launch of 1 ms that reads `bytes` from DRAM and keeps it busy to `percent`, without other problems. */
function launch(kernel_name: string, bytes: number, percent: number): Row<'counters'>[] {
  const metrics: Record<string, number> = {
    'gpu__time_duration.sum': 1e6,
    'dram__bytes_read.sum': bytes,
    'gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed': percent,
    'sm__throughput.avg.pct_of_peak_sustained_elapsed': 30,
    'lts__t_sector_hit_rate.pct': 20,
    launch__grid_dim_x: 4096,
    launch__grid_dim_y: 1,
    launch__grid_dim_z: 1,
    launch__block_dim_x: 256,
    launch__block_dim_y: 1,
    launch__block_dim_z: 1,
    'sm__warps_active.avg.pct_of_peak_sustained_active': 90,
    sm__maximum_warps_per_active_cycle_pct: 100,
  };
  const keys = { execution_id: 'counters', capture_id: 'ncu', pid: 1, device: 0, launch_ordinal: 0 };
  return Object.entries(metrics).map(([metric, value]) => ({ ...keys, kernel_name, metric, value }));
}

/** @param inUse peak device memory of the program; null if not recorded */
async function context(counters: Row<'counters'>[], inUse: number | null) {
  const allocated = { execution_id: 'counters', capture_id: 'ncu', device: 0, kind: 'allocated', t_ns: 0 };
  const session = await sessionOf(
    home,
    { counters, ...(inUse === null ? {} : { memory: [{ ...allocated, bytes: inUse }] }) },
    { kind: 'run', workload: null, roofline: null },
  );
  const database = await session.connect();
  open.push(database);
  return findingContext(session, database, null, []);
}

const kind = ({ outcome }: RuleOutcome) => outcome;

test("reports L2 misses when a kernel reads four times the program's memory", async () => {
  const result = await l2HitRate.find(await context(launch('rereads', 4 * gib, 80), gib));
  if (result.outcome !== 'fired') throw new Error(result.why);
  const [finding] = result.findings;
  expect(finding!.title).toContain(
    'reads 4.00 GiB from DRAM, 4.00× the memory that the program uses (1.00 GiB)',
  );
  // Three quarters of the bytes are re-read, and DRAM is busy for 80 % of the millisecond.
  expect(finding!.gain).toMatchObject({
    expected_ms: expect.closeTo(0.75 * 0.8, 9) as number,
    low_ms: expect.closeTo(0.3, 9) as number,
    high_ms: 0.75,
  });
});

test('does not report L2 misses for a low hit rate alone, an idle DRAM, or an unknown amount of data', async () => {
  expect(kind(await l2HitRate.find(await context(launch('streams', gib, 90), gib)))).toBe('not_fired');
  expect(kind(await l2HitRate.find(await context(launch('computes', 4 * gib, 20), gib)))).toBe('not_fired');
  expect(kind(await l2HitRate.find(await context(launch('unknown', 4 * gib, 80), null)))).toBe(
    'not_applicable',
  );
  expect(kind(await l2HitRate.find(await context([], gib)))).toBe('not_applicable');
});

test('a kernel that only streams has no finding for occupancy, coalescing or bank conflicts', async () => {
  const streaming = await context(launch('streams', gib, 90), gib);
  for (const rule of [lowOccupancy, uncoalescedAccess, bankConflicts])
    expect(kind(await rule.find(streaming)), rule.id).not.toBe('fired');
});
