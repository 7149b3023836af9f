import type { Workbench } from '../../model/workbench.js';
import { nodeWithoutId } from './impossible.js';
import { attributions } from './host-threads.js';
import { readSlices, inSlice } from './slices.js';
import { integer, integersOf } from './texts.js';

/**
 * Sorts the table's rows by start_ns; most profilers already write them so.
 * @returns whether some start together
 */
export async function sortByStart(workbench: Workbench, table: string): Promise<boolean> {
  const { descending, equal } = await countNeighbors(workbench, table);
  if (descending === 0) return equal > 0;
  await workbench.run(`CREATE TABLE attr_sorted AS SELECT * FROM ${table} ORDER BY start_ns`);
  await workbench.run(`DROP TABLE ${table}`);
  await workbench.run(`ALTER TABLE attr_sorted RENAME TO ${table}`);
  return (await countNeighbors(workbench, table)).equal > 0;
}

async function countNeighbors(
  workbench: Workbench,
  table: string,
): Promise<{ descending: number; equal: number }> {
  const [counts] = await workbench.query<{ descending: number; equal: number }>(
    `SELECT count(*) FILTER (start_ns < before) AS descending, count(*) FILTER (start_ns = before) AS equal
     FROM (SELECT start_ns, lag(start_ns) OVER () AS before FROM ${table})`,
  );
  return counts!;
}

/** Joins trace_api with the host sweep's result per row into attr_api; drops both. */
export async function joinCalls(workbench: Workbench): Promise<void> {
  const n = attributions.length;
  const asInteger = await integersOf(workbench, 'trace_api', 'a');
  await workbench.run(
    `CREATE TABLE attr_api AS SELECT ${asInteger('start_ns')} AS start_ns, ${asInteger('dur_ns')} AS dur_ns,
       ${asInteger('pid')} AS pid, ${asInteger('tid')} AS tid, ${asInteger('rank', 'INTEGER')} AS rank, ${asInteger('correlation')} AS correlation,
       ${asInteger('name', 'INTEGER')} AS name, ${asInteger('api', 'INTEGER')} AS api,
       nullif(floor(c.place / ${n}), 0)::INTEGER AS stage_id, CASE WHEN c.place > 0 THEN c.place % ${n} END::UTINYINT AS attributed_by,
       ${integer('c.op_id')} AS op_id, ${integer('c.op_class', 'UTINYINT')} AS op_class
     FROM trace_api a POSITIONAL JOIN attr_calls c`,
  );
  await workbench.run('DROP TABLE trace_api');
  await workbench.run('DROP TABLE attr_calls');
}

/**
 * Kernels and copies with the call that launched them: attr_kernels and attr_copies, with row numbers in `activity`. Joined
 * by (pid, correlation): a correlation id is unique only within a process. A runtime call and
 * the driver call inside it may share one id: the outer one, which started first, is used.
 * A kernel's `op_class` is the class that its operator gives kernels (OpenOp.kernelClass); null in CUDA graphs, which contain
 * kernels of other classes than the operator that launched the graph.
 * @param graphLaunches name codes of calls that launch CUDA graphs
 * @returns number of calls with the id of an earlier call
 */
export async function joinLaunches(
  workbench: Workbench,
  graphLaunches: ReadonlySet<number>,
): Promise<number> {
  const shared = await countSharedIds(workbench);
  if (shared > 0)
    await workbench.run(
      `CREATE TABLE attr_outer AS SELECT DISTINCT ON (pid, correlation) * FROM attr_api
       WHERE correlation IS NOT NULL ORDER BY pid, correlation, start_ns, dur_ns DESC`,
    );
  const calls = shared > 0 ? 'attr_outer' : 'attr_api';
  for (const table of launchTables) await joinLaunch(workbench, table, calls, graphLaunches);
  if (shared > 0) await workbench.run('DROP TABLE attr_outer');
  return shared;
}

/** Checked before joining: if all calls had one id, the join would be quadratic. */
async function countSharedIds(workbench: Workbench): Promise<number> {
  // One thread that launches everything numbers its calls in order: then there are no duplicates.
  const [order] = await workbench.query<{ n: number }>(
    `SELECT count(*) AS n FROM (SELECT correlation <= lag(correlation) OVER () OR pid <> lag(pid) OVER () AS descending
     FROM attr_api WHERE correlation IS NOT NULL) WHERE descending`,
  );
  if (order!.n === 0) return 0;
  const [duplicates] = await workbench.query<{ n: number }>(
    `SELECT coalesce(sum(n - 1), 0)::BIGINT AS n FROM
       (SELECT count(*) AS n FROM attr_api WHERE correlation IS NOT NULL GROUP BY pid, correlation HAVING count(*) > 1)`,
  );
  return duplicates!.n;
}

const launchTables = ['kernels', 'copies'] as const;

const launchColumns = {
  kernels: ['name', 'short_name', 'grid', 'block', 'registers', 'shared_mem_bytes'],
  copies: ['kind', 'src_kind', 'dst_kind'],
};

async function joinLaunch(
  workbench: Workbench,
  table: (typeof launchTables)[number],
  calls: string,
  graphLaunches: ReadonlySet<number>,
): Promise<void> {
  const asInteger = await integersOf(workbench, `trace_${table}`, 'k');
  const columnsSql = launchColumns[table].map((column) => `${asInteger(column, 'INTEGER')} AS "${column}"`);
  const launchesGraph = `coalesce(a.name IN (${[...graphLaunches, -1].join(', ')}), false)`;
  const opaque = table === 'kernels' ? ' AND k.opaque_graph IS DISTINCT FROM 1' : '';
  const node = `coalesce(${asInteger('graph_node')}, CASE WHEN ${launchesGraph}${opaque} THEN ${nodeWithoutId} END)`;
  if (table === 'kernels') {
    const inGraph = `${asInteger('graph_node')} IS NOT NULL OR ${launchesGraph}`;
    const opClass = `CASE WHEN ${asInteger('op_id')} IS NULL THEN a.op_class ELSE ${integer('o.kernel_class', 'UTINYINT')} END`;
    columnsSql.push(`${asInteger('graph_id')} AS graph_id`, 'k.opaque_graph = 1 AS opaque_graph');
    columnsSql.push(`CASE WHEN NOT (${inGraph}) THEN ${opClass} END AS op_class`);
  } else columnsSql.push(`${asInteger('bytes')} AS bytes`);
  const select = (
    activityFilter: string,
    candidates: string,
    operators: string,
  ) => `SELECT k.rowid AS activity,
       ${asInteger('start_ns')} AS start_ns, ${asInteger('dur_ns')} AS dur_ns, ${asInteger('pid')} AS pid,
       ${asInteger('rank', 'INTEGER')} AS rank, ${asInteger('device', 'INTEGER')} AS device,
       ${asInteger('context')} AS context, ${asInteger('stream')} AS stream,
       ${asInteger('correlation')} AS correlation, ${node} AS graph_node, ${columnsSql.join(', ')},
       a.start_ns AS api_start_ns, a.dur_ns AS api_dur_ns, a.tid, a.stage_id, a.attributed_by,
       coalesce(${asInteger('op_id')}, a.op_id) AS op_id
     FROM (SELECT rowid, * FROM trace_${table} WHERE ${activityFilter}) k
     LEFT JOIN (SELECT * FROM ${calls} WHERE ${candidates}) a ON a.pid = ${asInteger('pid')} AND a.correlation = ${asInteger('correlation')}
     LEFT JOIN (SELECT op_id, kernel_class FROM attr_ops WHERE ${operators}) o ON o.op_id = ${asInteger('op_id')}`;
  await workbench.run(`CREATE TABLE attr_${table} AS ${select('false', 'false', 'false')}`);
  const slices = (key: string) => readSlices(workbench, `trace_${table}`, `nullif(${key}, 'nan'::DOUBLE)`);
  const operators = await slices('op_id');
  for (const [number, slice] of (await slices('correlation')).entries()) {
    const filters = [inSlice('correlation', slice), inSlice('op_id', operators[number]!)] as const;
    await workbench.run(`INSERT INTO attr_${table} ${select(slice.rows, ...filters)}`);
  }
}
