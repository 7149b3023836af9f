import type { Batch, Workbench } from '../../model/workbench.js';
import { openCursor, refill, nextRow } from './cursor.js';
import { attributions } from './host-threads.js';
import { openRowWriter } from './row-writer.js';

export interface OrphanCounts {
  /** Device activities without an API call. */
  orphans: number;
  /** Those assigned to a stage by time. */
  byTime: number;
}

interface OpenInterval {
  stage: number;
  endNs: number;
}

/**
 * Activities without a recorded API call (cut off by the capture window) get the stage of their process that is open when
 * they start, the latest one if there are several. Updates attr_kernels and attr_copies.
 */
export async function attributeOrphans(workbench: Workbench): Promise<OrphanCounts> {
  const counts: OrphanCounts = { orphans: 0, byTime: 0 };
  for (const table of ['attr_kernels', 'attr_copies']) {
    const [count] = await workbench.query<{ n: number }>(
      `SELECT count(*) AS n FROM ${table} WHERE api_start_ns IS NULL`,
    );
    if (count!.n === 0) continue;
    counts.orphans += count!.n;
    counts.byTime += await assignByTime(workbench, table);
  }
  return counts;
}

async function assignByTime(workbench: Workbench, table: string): Promise<number> {
  const rows = await openRowWriter(workbench, 'attr_by_time', ['activity', 'stage_id']);
  const count = await findStagesByTime(
    workbench.scan('SELECT start_ns, end_ns, pid, stage_id FROM attr_stages ORDER BY start_ns, stage_id'),
    workbench.scan(
      `SELECT start_ns, pid, activity FROM ${table} WHERE api_start_ns IS NULL ORDER BY start_ns`,
    ),
    (activity, stage) => rows.add(activity, stage),
  );
  rows.close();
  await workbench.run(
    `UPDATE ${table} SET stage_id = t.stage_id::INTEGER, attributed_by = ${attributions.indexOf('time')}
     FROM attr_by_time t WHERE t.activity = ${table}.activity`,
  );
  await workbench.run('DROP TABLE attr_by_time');
  return count;
}

/**
 * @param stageRows start_ns, end_ns, pid, stage_id; sorted by start_ns, stage_id
 * @param orphans start_ns, pid, activity; sorted by start_ns
 * @param assign called for each activity with a stage
 * @returns number of activities with a stage
 */
export async function findStagesByTime(
  stageRows: AsyncIterable<Batch>,
  orphans: AsyncIterable<Batch>,
  assign: (activity: number, stage: number) => void,
): Promise<number> {
  const stages = await openCursor(stageRows);
  const activities = await openCursor(orphans);
  const open = new Map<number, OpenInterval[]>();
  let count = 0;
  while (activities.source) {
    while (stages.time <= activities.time && stages.source) {
      const { columns, row } = stages;
      const pid = columns['pid']![row]!;
      const stillOpen = (open.get(pid) ?? []).filter(({ endNs }) => endNs > stages.time);
      stillOpen.push({ stage: columns['stage_id']![row]!, endNs: columns['end_ns']![row]! });
      open.set(pid, stillOpen);
      if (!nextRow(stages)) await refill(stages);
    }
    const { columns, row } = activities;
    const enclosing = open.get(columns['pid']![row]!)?.findLast(({ endNs }) => endNs > activities.time);
    if (enclosing) {
      assign(columns['activity']![row]!, enclosing.stage);
      count++;
    }
    if (!nextRow(activities)) await refill(activities);
  }
  return count;
}
