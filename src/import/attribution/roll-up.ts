import type { Workbench } from '../../model/workbench.js';

/**
 * Device work of each stage, of ranges inside it included: table attr_stage_device (stage_id, device, device_start_ns,
 * device_end_ns); device is the busiest. Level by level from the innermost, so that it is one small join a level.
 */
export async function rollUpStages(workbench: Workbench): Promise<void> {
  await workbench.run(
    `CREATE TABLE attr_stage_work AS
     SELECT w.*, s.depth, s.parent_id FROM (
       SELECT stage_id, device, min(start_ns) AS first, max(start_ns + dur_ns) AS last, sum(dur_ns)::BIGINT AS busy
       FROM (SELECT stage_id, device, start_ns, dur_ns FROM attr_kernels
             UNION ALL SELECT stage_id, device, start_ns, dur_ns FROM attr_copies)
       WHERE stage_id IS NOT NULL GROUP BY ALL) w
     JOIN attr_stages s USING (stage_id)`,
  );
  for (let depth = await deepest(workbench, 'attr_stage_work'); depth > 0; depth--) {
    await workbench.run(
      `INSERT INTO attr_stage_work
       SELECT w.*, s.depth, s.parent_id FROM (
         SELECT parent_id AS stage_id, device, min(first), max(last), sum(busy)::BIGINT
         FROM attr_stage_work WHERE depth = ${depth} GROUP BY ALL) w
       JOIN attr_stages s USING (stage_id)`,
    );
  }
  await workbench.run(
    `CREATE TABLE attr_stage_device AS
     SELECT stage_id, arg_max(device, busy) AS device, min(first) AS device_start_ns, max(last) AS device_end_ns
     FROM (SELECT stage_id, device, min(first) AS first, max(last) AS last, sum(busy) AS busy
           FROM attr_stage_work GROUP BY ALL ORDER BY stage_id, device)
     GROUP BY stage_id`,
  );
  await workbench.run('DROP TABLE attr_stage_work');
}

/** Device time of each operator and of those inside it: table attr_op_device (op_id, device_dur_ns). */
export async function rollUpOps(workbench: Workbench): Promise<void> {
  await workbench.run(
    `CREATE TABLE attr_op_work AS
     SELECT w.*, o.depth, o.parent_op_id FROM (
       SELECT op_id, sum(dur_ns)::BIGINT AS busy
       FROM (SELECT op_id, dur_ns FROM attr_kernels UNION ALL SELECT op_id, dur_ns FROM attr_copies)
       WHERE op_id IS NOT NULL GROUP BY ALL) w
     JOIN attr_ops o USING (op_id)`,
  );
  for (let depth = await deepest(workbench, 'attr_op_work'); depth > 0; depth--) {
    await workbench.run(
      `INSERT INTO attr_op_work
       SELECT w.*, o.depth, o.parent_op_id FROM (
         SELECT parent_op_id AS op_id, sum(busy)::BIGINT FROM attr_op_work WHERE depth = ${depth} GROUP BY ALL) w
       JOIN attr_ops o USING (op_id)`,
    );
  }
  await workbench.run(
    'CREATE TABLE attr_op_device AS SELECT op_id, sum(busy)::BIGINT AS device_dur_ns FROM attr_op_work GROUP BY op_id',
  );
  await workbench.run('DROP TABLE attr_op_work');
}

async function deepest(workbench: Workbench, table: string): Promise<number> {
  const [found] = await workbench.query<{ depth: number | null }>(
    `SELECT max(depth)::INTEGER AS depth FROM ${table}`,
  );
  return found!.depth ?? 0;
}
