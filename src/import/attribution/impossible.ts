import type { Workbench } from '../../model/workbench.js';
import { traceTables } from '../trace-tables.js';

/** Kernels and copies that cannot have run as they were recorded, and clocks that disagree. */
export interface ImpossibleCounts {
  /** Recorded more than once; left out but for the first. */
  repeated: number;
  /** On a device whose number no machine has; left out. */
  noDevice: number;
  /** They begin so long before the call that launched them that no clock explains it; left out. */
  beforeLaunch: number;
  /** They begin so long after it that no queue explains it; kept. */
  afterLaunch: number;
  /** They begin before that call all the same, by more than `skewNs`. */
  skewed: number;
  /** The most of these. */
  mostSkewNs: number;
}

/** Clocks of host and device are aligned to some µs; less than this is no news. */
const skewNs = 20_000;
/** A kernel that begins this long before its launch says that its time is wrong, whatever clocks do. */
const impossibleLeadNs = 1_000_000_000;
/** Queues hold about a thousand launches: one that waits longer than this was recorded by another clock, or not here. */
const impossibleWaitNs = 60_000_000_000;

/** More GPUs than any machine has. */
const mostDevices = 1024;

/** @param device NaN where the capture does not say */
export const isNoDevice = (device: number): boolean =>
  !Number.isNaN(device) && !(Number.isInteger(device) && device >= 0 && device < mostDevices);

export const nothingImpossible = (): ImpossibleCounts => ({
  repeated: 0,
  noDevice: 0,
  beforeLaunch: 0,
  afterLaunch: 0,
  skewed: 0,
  mostSkewNs: 0,
});

/** Calls that put kernels onto a device. */
const launchCall = /^(?:cuda|cu|hip)(?:\w*Launch\w*Kernel|GraphLaunch)/;

export const isLaunch = (name: string): boolean => launchCall.test(name);

export const isGraphLaunch = (name: string): boolean => /^(?:cuda|cu|hip)GraphLaunch/.test(name);

/**
 * Leaves rows out of a trace table that are there more than once: two activities of one stream that are the same in
 * everything did not both run.
 * @param table sorted by start_ns, some rows of which begin together
 */
export async function dropRepeated(
  workbench: Workbench,
  table: 'trace_kernels' | 'trace_copies',
): Promise<number> {
  // The launching operator may be known for one of them only.
  const same = traceTables[table].filter((column) => column !== 'op_id').map((column) => `"${column}"`);
  const repeated = `SELECT row FROM (
      SELECT rowid AS row, row_number() OVER (PARTITION BY ${same.join(', ')} ORDER BY rowid) AS n FROM ${table}
      WHERE start_ns IN (SELECT start_ns FROM ${table} GROUP BY start_ns HAVING count(*) > 1)) WHERE n > 1`;
  const [found] = await workbench.query<{ n: number }>(`SELECT count(*) AS n FROM (${repeated})`);
  if (found!.n === 0) return 0;
  await keepRows(workbench, table, `rowid NOT IN (${repeated})`);
  return found!.n;
}

/** Leaves rows out of a trace table whose device cannot be, by the rule of isNoDevice. */
export async function dropNoDevice(
  workbench: Workbench,
  table: 'trace_kernels' | 'trace_copies',
): Promise<number> {
  const possible = `device BETWEEN 0 AND ${mostDevices - 1} AND device = floor(device)`;
  const none = `device IS NOT NULL AND NOT isnan(device::DOUBLE) AND NOT (${possible})`;
  const [found] = await workbench.query<{ n: number }>(`SELECT count(*) AS n FROM ${table} WHERE ${none}`);
  if (found!.n > 0) await keepRows(workbench, table, `NOT (${none})`);
  return found!.n;
}

/** Rows are numbered anew: what follows counts on numbers without gaps. */
async function keepRows(workbench: Workbench, table: string, where: string): Promise<void> {
  await workbench.run(`CREATE TABLE attr_kept AS SELECT * FROM ${table} WHERE ${where} ORDER BY rowid`);
  await workbench.run(`DROP TABLE ${table}`);
  await workbench.run(`ALTER TABLE attr_kept RENAME TO ${table}`);
}

/**
 * Counts an activity that begins before its launch or long after it.
 * @param leadNs how long before; negative: after
 * @returns whether it is to be left out
 */
export function judgeLead(leadNs: number, counts: ImpossibleCounts): boolean {
  if (leadNs < -impossibleWaitNs) counts.afterLaunch++;
  if (leadNs <= skewNs) return false;
  if (leadNs > impossibleLeadNs) {
    counts.beforeLaunch++;
    return true;
  }
  counts.skewed++;
  counts.mostSkewNs = Math.max(counts.mostSkewNs, leadNs);
  return false;
}

/** As judgeLead, of attr_kernels and attr_copies. */
export async function dropBeforeLaunch(workbench: Workbench, counts: ImpossibleCounts): Promise<void> {
  const lead = 'api_start_ns - start_ns';
  for (const table of ['attr_kernels', 'attr_copies']) {
    const before = counts.beforeLaunch;
    const scan = workbench.scan(
      `SELECT ${lead} AS lead FROM ${table} WHERE ${lead} > ${skewNs} OR ${lead} < ${-impossibleWaitNs}`,
    );
    for await (const { rows, columns } of scan)
      for (let row = 0; row < rows; row++) judgeLead(columns['lead']![row]!, counts);
    if (counts.beforeLaunch > before)
      await workbench.run(`DELETE FROM ${table} WHERE ${lead} > ${impossibleLeadNs}`);
  }
}
