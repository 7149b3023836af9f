import type { Workbench } from '../../model/workbench.js';
import { traceTables } from '../trace-tables.js';

/** Kernels and copies with impossible times, and clocks that disagree. */
export interface ImpossibleCounts {
  /** Recorded more than once; only the first is kept. */
  repeated: number;
  /** On a device number that no machine has; dropped. */
  impossibleDevice: number;
  /** Start so long before their launch call that no clock error explains it; dropped. */
  beforeLaunch: number;
  /** Start so long after their launch call that no queue explains it; kept. */
  afterLaunch: number;
  /** Start before their launch call by more than `skewNs`. */
  skewed: number;
  /** The largest of these skews, ns. */
  maxSkewNs: number;
}

/** Host and device clocks are aligned to a few µs; smaller differences are ignored. */
const skewNs = 20_000;
/** A kernel that starts this long before its launch has a wrong time, whatever the clock error. */
const impossibleLeadNs = 1_000_000_000;
/** A queue holds about a thousand launches: a longer wait means that another clock or another run recorded it. */
const impossibleWaitNs = 60_000_000_000;

/** More GPUs than any machine has. */
const maxDevices = 1024;

/** Whether a device number is impossible; NaN (not recorded) is possible. */
export const isImpossibleDevice = (device: number): boolean =>
  !Number.isNaN(device) && !(Number.isInteger(device) && device >= 0 && device < maxDevices);

export const newImpossibleCounts = (): ImpossibleCounts => ({
  repeated: 0,
  impossibleDevice: 0,
  beforeLaunch: 0,
  afterLaunch: 0,
  skewed: 0,
  maxSkewNs: 0,
});

/** Calls that launch work on a device. */
const launchCall = /^(?:cuda|cu|hip)(?:\w*Launch\w*Kernel|GraphLaunch)/;

export const isLaunch = (name: string): boolean => launchCall.test(name);

/** `graph_node` of activities in a CUDA graph if the profiler records no node ids: Kineto of ROCm and of older PyTorch. */
export const nodeWithoutId = 0;

export const isGraphLaunch = (name: string): boolean => /^(?:cuda|cu|hip)GraphLaunch/.test(name);

/**
 * Drops duplicate rows of a trace table: two identical activities on one stream cannot both have run.
 * @param table sorted by start_ns
 */
export async function dropRepeated(
  workbench: Workbench,
  table: 'trace_kernels' | 'trace_copies',
): Promise<number> {
  // The launching operator may be known for only one of the duplicates.
  const comparedColumns = traceTables[table]
    .filter((column) => column !== 'op_id')
    .map((column) => `"${column}"`);
  const repeated = `SELECT row FROM (
      SELECT rowid AS row, row_number() OVER (PARTITION BY ${comparedColumns.join(', ')} ORDER BY rowid) AS n FROM ${table}
      WHERE start_ns IN (SELECT start_ns FROM ${table} GROUP BY start_ns HAVING count(*) > 1)) WHERE n > 1`;
  const [count] = await workbench.query<{ n: number }>(`SELECT count(*) AS n FROM (${repeated})`);
  if (count!.n === 0) return 0;
  await keepRows(workbench, table, `rowid NOT IN (${repeated})`);
  return count!.n;
}

/** Drops rows of a trace table with an impossible device number (isImpossibleDevice). */
export async function dropImpossibleDevices(
  workbench: Workbench,
  table: 'trace_kernels' | 'trace_copies',
): Promise<number> {
  const possible = `device BETWEEN 0 AND ${maxDevices - 1} AND device = floor(device)`;
  const impossible = `device IS NOT NULL AND NOT isnan(device::DOUBLE) AND NOT (${possible})`;
  const [count] = await workbench.query<{ n: number }>(
    `SELECT count(*) AS n FROM ${table} WHERE ${impossible}`,
  );
  if (count!.n > 0) await keepRows(workbench, table, `NOT (${impossible})`);
  return count!.n;
}

/** Renumbers the rows: later steps rely on numbers without gaps. */
async function keepRows(workbench: Workbench, table: string, where: string): Promise<void> {
  await workbench.run(`CREATE TABLE attr_kept AS SELECT * FROM ${table} WHERE ${where} ORDER BY rowid`);
  await workbench.run(`DROP TABLE ${table}`);
  await workbench.run(`ALTER TABLE attr_kept RENAME TO ${table}`);
}

/**
 * Counts an activity that starts before its launch or long after it.
 * @param leadNs ns from its start to its launch call; negative if it starts after the call
 * @returns whether to drop it
 */
export function judgeLead(leadNs: number, counts: ImpossibleCounts): boolean {
  if (leadNs < -impossibleWaitNs) counts.afterLaunch++;
  if (leadNs <= skewNs) return false;
  if (leadNs > impossibleLeadNs) {
    counts.beforeLaunch++;
    return true;
  }
  counts.skewed++;
  counts.maxSkewNs = Math.max(counts.maxSkewNs, leadNs);
  return false;
}

/** Applies judgeLead to attr_kernels and attr_copies. */
export async function dropBeforeLaunch(workbench: Workbench, counts: ImpossibleCounts): Promise<void> {
  const lead = 'api_start_ns - start_ns';
  for (const table of ['attr_kernels', 'attr_copies']) {
    const countBefore = counts.beforeLaunch;
    const scan = workbench.scan(
      `SELECT ${lead} AS lead FROM ${table} WHERE ${lead} > ${skewNs} OR ${lead} < ${-impossibleWaitNs}`,
    );
    for await (const { rows, columns } of scan)
      for (let row = 0; row < rows; row++) judgeLead(columns['lead']![row]!, counts);
    if (counts.beforeLaunch > countBefore)
      await workbench.run(`DELETE FROM ${table} WHERE ${lead} > ${impossibleLeadNs}`);
  }
}
