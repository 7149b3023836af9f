import type { TableSink } from '../../model/tables.js';
import type { Workbench } from '../../model/workbench.js';
import { isLaunch } from '../attribution/impossible.js';
import type { ImportContext } from '../importer.js';
import type { ReadTable } from './facts.js';
import type { SqliteValue } from './sqlite-record.js';

/** A time in which a thread had no core, ns of the session. */
interface OffCore {
  pid: number;
  tid: number;
  start_ns: number;
  end_ns: number;
}

/**
 * Saves as telemetry when a launching thread could run and had no core, from nsys's context switches (--cpuctxsw). A row holds from the one
 * before it to its own time. Why a thread leaves its core is known from its state, or from OS calls (--trace=osrt): a thread outside of
 * every call that can block did not leave by itself. Without both (nsys 2025.3.1 on Linux exports only unknown states), nothing is saved;
 * a thread without context switches has no rows either.
 * Tables as in "Export SQLite schema" of NVIDIA's User Guide.
 * @param offset_ns added to all times
 */
export async function saveThreadDelays(
  read: ReadTable,
  { workbench, sink }: { workbench: Workbench; sink: Pick<TableSink, 'append'> },
  { execution_id, capture_id, host }: Pick<ImportContext, 'execution_id' | 'capture_id' | 'host'>,
  offset_ns: number,
): Promise<void> {
  const switches = await read('SCHED_EVENTS', ['start', 'isSchedIn', 'globalTid', 'threadState']);
  const calls = workbench.savedRows('api_calls', [capture_id]);
  const kernels = workbench.savedRows('kernels', [capture_id]);
  if (switches.length === 0 || calls === null || kernels === null) return;
  const osCalls = await read('OSRT_API', ['start', 'end', 'globalTid']);
  const runnable = new Set(
    (await read('ENUM_SAMPLING_THREAD_STATE', ['id', 'name'])).flatMap(([id, name]) =>
      name === 'Running' ? [Number(id)] : [],
    ),
  );
  const isRunnable = (state: SqliteValue | undefined) => state !== null && runnable.has(Number(state));
  const hasStates = switches.some(([, , , state]) => isRunnable(state));
  if (!hasStates && osCalls.length === 0) return;
  const launching = new Set(
    (
      await workbench.query<{ pid: number; tid: number }>(
        `SELECT DISTINCT CAST(pid AS BIGINT) AS pid, CAST(coalesce(tid, pid) AS BIGINT) AS tid FROM ${kernels} WHERE pid IS NOT NULL`,
      )
    ).map(({ pid, tid }) => `${pid} ${tid}`),
  );
  const bounds = { from: Infinity, until: -Infinity };
  const left = new Map<string, number>();
  const switched = new Set<string>();
  const candidates: OffCore[] = [];
  for (const [time, isIn, thread, state] of switches.toSorted(([a], [b]) => Number(a) - Number(b))) {
    if (typeof thread !== 'bigint' && typeof thread !== 'number') continue;
    const at = Number(time) + offset_ns;
    bounds.from = Math.min(bounds.from, at);
    bounds.until = Math.max(bounds.until, at);
    const { pid, tid } = threadOf(thread);
    const key = `${pid} ${tid}`;
    if (!launching.has(key)) continue;
    switched.add(key);
    const since = left.get(key);
    if (isIn) {
      if (since !== undefined) candidates.push({ pid, tid, start_ns: since, end_ns: at });
      left.delete(key);
    } else if (!hasStates || isRunnable(state)) left.set(key, at);
  }
  const keys = { execution_id, capture_id, host, rank: null, metric: 'preempted_percent' };
  const waits = await outsideOfCalls(workbench, candidates, calls, osCalls, offset_ns);
  for (const key of switched) {
    const [pid, tid] = key.split(' ').map(Number) as [number, number];
    const put = (t_ns: number, value: number) =>
      sink.append('telemetry', { ...keys, pid, scope: `thread${tid}`, t_ns, value });
    put(bounds.from, 0);
    for (const wait of waits.filter((row) => row.pid === pid && row.tid === tid)) {
      put(wait.start_ns, 0);
      put(wait.end_ns, 100);
    }
    put(bounds.until, 0);
  }
}

const threadOf = (globalTid: number | bigint) => {
  const id = BigInt(globalTid);
  return { pid: Number((id >> 24n) & 0xffffffn), tid: Number(id & 0xffffffn) };
};

/** Those that start outside of OS calls and of CUDA calls; a launch does not block, so it does not count as a call. */
async function outsideOfCalls(
  workbench: Workbench,
  candidates: readonly OffCore[],
  calls: string,
  osCalls: readonly SqliteValue[][],
  offset_ns: number,
): Promise<OffCore[]> {
  if (candidates.length === 0) return [];
  const names = await workbench.query<{ name: string }>(`SELECT DISTINCT name FROM ${calls}`);
  const launches = names.flatMap(({ name }) => (isLaunch(name) ? [`'${name}'`] : []));
  await fill(workbench, 'nsys_off_core', candidates);
  await fill(
    workbench,
    'nsys_os_calls',
    osCalls.flatMap(([start, end, thread]) =>
      typeof thread !== 'bigint' && typeof thread !== 'number'
        ? []
        : [
            {
              ...threadOf(thread),
              start_ns: Number(start) + offset_ns,
              end_ns: Number(end) + offset_ns,
            },
          ],
    ),
  );
  const rows = await workbench.query<OffCore>(
    `WITH calls AS (
       SELECT pid, tid, start_ns, end_ns FROM nsys_os_calls
       UNION ALL SELECT pid, tid, start_ns, start_ns + dur_ns FROM ${calls}
       ${launches.length > 0 ? `WHERE name NOT IN (${launches.join(', ')})` : ''}),
     ends AS (SELECT pid, tid, start_ns, max(end_ns) OVER (PARTITION BY pid, tid ORDER BY start_ns) AS until_ns FROM calls)
     SELECT CAST(o.pid AS BIGINT) AS pid, CAST(o.tid AS BIGINT) AS tid, CAST(o.start_ns AS BIGINT) AS start_ns, CAST(o.end_ns AS BIGINT) AS end_ns
     FROM nsys_off_core o ASOF LEFT JOIN ends e ON o.pid = e.pid AND o.tid = e.tid AND o.start_ns >= e.start_ns
     WHERE coalesce(e.until_ns, o.start_ns) <= o.start_ns ORDER BY o.start_ns`,
  );
  await workbench.run('DROP TABLE nsys_off_core; DROP TABLE nsys_os_calls');
  return rows;
}

async function fill(workbench: Workbench, table: string, rows: readonly OffCore[]): Promise<void> {
  const columns = Object.fromEntries(
    (['pid', 'tid', 'start_ns', 'end_ns'] as const).map((name) => [
      name,
      Float64Array.from(rows, (row) => row[name]),
    ]),
  );
  const writer = await workbench.createTable(table, Object.keys(columns));
  if (rows.length > 0) writer.append(columns, rows.length);
  writer.close();
}
