import type { Workbench } from '../../model/workbench.js';

/**
 * Device work per stage, nested ranges included: table attr_stage_device (stage_id, device, device_start_ns,
 * device_end_ns); device is the busiest, the lowest on a tie.
 */
export async function rollUpStages(workbench: Workbench): Promise<void> {
  await rollUp(workbench, {
    tree: 'attr_stages',
    id: 'stage_id',
    parent: 'parent_id',
    ofActivities:
      'device, min(start_ns) AS first, max(start_ns + dur_ns) AS last, sum(dur_ns)::BIGINT AS busy',
    ofAggregates: 'device, min(first) AS first, max(last) AS last, sum(busy)::BIGINT AS busy',
    into: `CREATE TABLE attr_stage_device AS
     SELECT stage_id, arg_max(device, busy) AS device, min(first) AS device_start_ns, max(last) AS device_end_ns
     FROM (SELECT stage_id, device, min(first) AS first, max(last) AS last, sum(busy) AS busy
           FROM attr_work GROUP BY ALL ORDER BY stage_id, device)
     GROUP BY stage_id`,
  });
}

/** Device time of each operator and the operators inside it: table attr_op_device (op_id, device_dur_ns). */
export async function rollUpOps(workbench: Workbench): Promise<void> {
  await rollUp(workbench, {
    tree: 'attr_ops',
    id: 'op_id',
    parent: 'parent_op_id',
    ofActivities: 'sum(dur_ns)::BIGINT AS busy',
    ofAggregates: 'sum(busy)::BIGINT AS busy',
    into: `CREATE TABLE attr_op_device AS
     SELECT op_id, sum(busy)::BIGINT AS device_dur_ns FROM attr_work GROUP BY op_id`,
  });
}

interface RollUp {
  /** Table with depth and columns `id` and `parent`. */
  tree: string;
  id: string;
  parent: string;
  /** Aggregates over activities, and over aggregates. */
  ofActivities: string;
  ofAggregates: string;
  /** Statement that creates the result from attr_work. */
  into: string;
}

/** Level by level from the innermost: one small join per level. */
async function rollUp(
  workbench: Workbench,
  { tree, id, parent, ofActivities, ofAggregates, into }: RollUp,
): Promise<void> {
  const activities = ['attr_kernels', 'attr_copies'].map(
    (table) => `SELECT ${id}, device, start_ns, dur_ns FROM ${table}`,
  );
  const level = (work: string) =>
    `SELECT w.*, t.depth, t.${parent} FROM (${work} GROUP BY ALL) w JOIN ${tree} t USING (${id})`;
  await workbench.run(
    `CREATE TABLE attr_work AS
     ${level(`SELECT ${id}, ${ofActivities} FROM (${activities.join(' UNION ALL ')}) WHERE ${id} IS NOT NULL`)}`,
  );
  const [deepest] = await workbench.query<{ depth: number | null }>(
    'SELECT max(depth)::INTEGER AS depth FROM attr_work',
  );
  for (let depth = deepest!.depth ?? 0; depth > 0; depth--)
    await workbench.run(
      `INSERT INTO attr_work ${level(`SELECT ${parent} AS ${id}, ${ofAggregates} FROM attr_work WHERE depth = ${depth}`)}`,
    );
  await workbench.run(into);
  await workbench.run('DROP TABLE attr_work');
}
