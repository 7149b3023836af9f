import type { Workbench } from '../../model/workbench.js';
import { attributions } from './host-threads.js';
import { slicesOf, within } from './slices.js';
import { integer, integersOf } from './texts.js';

/** Makes the table's rows follow in order of start_ns; most profilers write them so already. */
export async function sortByStart(workbench: Workbench, table: string): Promise<void> {
  const [found] = await workbench.query<{ n: number }>(
    `SELECT count(*) AS n FROM (SELECT start_ns < lag(start_ns) OVER () AS back FROM ${table}) WHERE back`,
  );
  if (found!.n === 0) return;
  await workbench.run(`CREATE TABLE attr_sorted AS SELECT * FROM ${table} ORDER BY start_ns`);
  await workbench.run(`DROP TABLE ${table}`);
  await workbench.run(`ALTER TABLE attr_sorted RENAME TO ${table}`);
}

/** trace_api and what the host sweep found for each of its rows become attr_api; both are dropped. */
export async function joinCalls(workbench: Workbench): Promise<void> {
  const n = attributions.length;
  const of = await integersOf(workbench, 'trace_api', 'a');
  await workbench.run(
    `CREATE TABLE attr_api AS SELECT ${of('start_ns')} AS start_ns, ${of('dur_ns')} AS dur_ns,
       ${of('pid')} AS pid, ${of('tid')} AS tid, ${of('rank', 'INTEGER')} AS rank, ${of('correlation')} AS correlation,
       ${of('name', 'INTEGER')} AS name, ${of('api', 'INTEGER')} AS api,
       ${integer(`floor(c.place / ${n})`, 'INTEGER')} AS stage_id, ${integer(`c.place % ${n}`, 'UTINYINT')} AS attributed_by,
       ${integer('c.op_id')} AS op_id
     FROM trace_api a POSITIONAL JOIN attr_calls c`,
  );
  await workbench.run('DROP TABLE trace_api');
  await workbench.run('DROP TABLE attr_calls');
}

/**
 * Kernels and copies with the call that launched them: attr_kernels and attr_copies, whose `activity` numbers
 * the rows. Joined by (pid, correlation): a correlation id alone is unique only within a process. A runtime call and
 * the driver call inside it may share one id: the outer one, which began first, counts.
 * @returns calls that shared an id
 */
export async function joinLaunches(workbench: Workbench): Promise<number> {
  const rows = await countRows(workbench);
  for (const table of launchTables) await joinLaunch(workbench, table, 'attr_api');
  const shared = (await countJoined(workbench)) - rows;
  if (shared === 0) return 0;
  await workbench.run(
    `CREATE TABLE attr_outer AS SELECT DISTINCT ON (pid, correlation) * FROM attr_api
     WHERE correlation IS NOT NULL ORDER BY pid, correlation, start_ns, dur_ns DESC`,
  );
  for (const table of launchTables) {
    await workbench.run(`DROP TABLE attr_${table}`);
    await joinLaunch(workbench, table, 'attr_outer');
  }
  await workbench.run('DROP TABLE attr_outer');
  return shared;
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
): Promise<void> {
  const of = await integersOf(workbench, `trace_${table}`, 'k');
  const own = launchColumns[table].map((column) => `${of(column, 'INTEGER')} AS "${column}"`);
  if (table === 'kernels') own.push(`${of('graph_id')} AS graph_id`, 'k.opaque_graph = 1 AS opaque_graph');
  else own.push(`${of('bytes')} AS bytes`);
  const select = (among: string, candidates: string) => `SELECT k.rowid AS activity,
       ${of('start_ns')} AS start_ns, ${of('dur_ns')} AS dur_ns, ${of('pid')} AS pid,
       ${of('rank', 'INTEGER')} AS rank, ${of('device', 'INTEGER')} AS device,
       ${of('context')} AS context, ${of('stream')} AS stream,
       ${of('correlation')} AS correlation, ${of('graph_node')} AS graph_node, ${own.join(', ')},
       a.start_ns AS api_start_ns, a.dur_ns AS api_dur_ns, a.tid, a.stage_id, a.attributed_by,
       coalesce(${of('op_id')}, a.op_id) AS op_id
     FROM (SELECT rowid, * FROM trace_${table} WHERE ${among}) k
     LEFT JOIN (SELECT * FROM ${calls} WHERE ${candidates}) a ON a.pid = ${of('pid')} AND a.correlation = ${of('correlation')}`;
  await workbench.run(`CREATE TABLE attr_${table} AS ${select('false', 'false')}`);
  for (const slice of await slicesOf(workbench, `trace_${table}`, "nullif(correlation, 'nan'::DOUBLE)"))
    await workbench.run(`INSERT INTO attr_${table} ${select(slice.rows, within('correlation', slice))}`);
}

async function countRows(workbench: Workbench): Promise<number> {
  const [row] = await workbench.query<{ n: number }>(
    'SELECT (SELECT count(*) FROM trace_kernels) + (SELECT count(*) FROM trace_copies) AS n',
  );
  return row!.n;
}

async function countJoined(workbench: Workbench): Promise<number> {
  const [row] = await workbench.query<{ n: number }>(
    'SELECT (SELECT count(*) FROM attr_kernels) + (SELECT count(*) FROM attr_copies) AS n',
  );
  return row!.n;
}
