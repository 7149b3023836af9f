import type { Columns, Workbench } from '../../model/workbench.js';
import type { InMemoryRanges } from '../attribution/in-memory/ranges.js';
import { UnreadableRows } from './damage.js';
import { shapeCodes, type ShapeCodes } from './shape-codes.js';
import type { NsysTables } from './tables.js';
import { maxTimeNs } from './trace.js';
import { domainCreate, noEvents, pushPop, rangeNames, startEnd } from './trace-ranges.js';

/** Ranges as read; the texts of their combinations are in nsys_range_texts. */
interface RangeRows {
  rows: number;
  start_ns: Float64Array;
  end_ns: Float64Array;
  shape: Int32Array;
  /** Maps keys of combinations to codes. */
  codes: ShapeCodes;
  combinations: number;
  /** Events of any type with impossible times. */
  impossible: number;
}

/** 53 bits, which fit a double, as for other events (parquetdir.ts). */
const shapeKeySql = 'hash(pid, tid, "eventType", "textId", "domainId", text) >> 11';
const isRangeEventSql = `"eventType" IN (${[...pushPop, ...startEnd, domainCreate].join(', ')})`;
const isRangeSql = `"eventType" IN (${[...pushPop, ...startEnd].join(', ')})`;

/**
 * Reads the ranges into memory, in the order of the file, and creates nsys_range_texts (shape, pid, tid, process_wide,
 * text) of their combinations.
 */
export async function readRanges(
  workbench: Workbench,
  { rows, strings }: NsysTables,
  offset_ns: number,
): Promise<RangeRows> {
  // The key is computed after DISTINCT, which would take a third longer with one more column.
  const combinations = `SELECT DISTINCT pid, tid, "eventType", "textId", "domainId", text FROM ${rows.nvtx ?? noEvents} WHERE ${isRangeEventSql}`;
  const names = rangeNames(
    `(SELECT ${shapeKeySql} AS shape, * FROM (${combinations}))`,
    strings,
    'shape, CAST(pid AS DOUBLE) AS pid, CAST(tid AS DOUBLE) AS tid',
  );
  await workbench.run(`CREATE TABLE nsys_range_texts AS ${names}`);
  const [total] = await workbench.query<{ n: number }>(`SELECT count(*) AS n FROM ${rows.nvtx ?? noEvents}`);
  const capacity = total!.n;
  const rangeRows: RangeRows = {
    rows: 0,
    start_ns: new Float64Array(capacity),
    end_ns: new Float64Array(capacity),
    shape: new Int32Array(capacity),
    codes: shapeCodes(),
    combinations: 0,
    impossible: 0,
  };
  if (capacity === 0) return rangeRows;
  const rowsSql = `SELECT start, "end", CASE WHEN ${isRangeSql} THEN CAST(${shapeKeySql} AS BIGINT) ELSE -1 END AS shape FROM ${rows.nvtx}`;
  let rowsRead = 0;
  for await (const batch of workbench.scan(rowsSql)) {
    addRanges(rangeRows, batch.columns, batch.rows, offset_ns);
    rowsRead += batch.rows;
  }
  if (rowsRead === capacity) return rangeRows;
  // A scan skips unreadable rows silently; a query fails with the reason.
  await workbench.query(`SELECT max(COLUMNS(*)) FROM (${rowsSql})`);
  throw new UnreadableRows(`Only ${rowsRead} of ${capacity} NVTX events could be read.`);
}

function addRanges(rangeRows: RangeRows, columns: Columns, count: number, offset_ns: number): void {
  const [start, end, shape] = [columns['start']!, columns['end']!, columns['shape']!];
  for (let i = 0; i < count; i++) {
    const from = start[i]!;
    const to = end[i]!;
    const open = Number.isNaN(to);
    if (!(from > -maxTimeNs && (open ? from < maxTimeNs : to >= from && to < maxTimeNs))) {
      rangeRows.impossible++;
      continue;
    }
    const combination = shape[i]!;
    if (combination < 0) continue;
    let code = rangeRows.codes.get(combination);
    if (code < 0) {
      code = rangeRows.combinations++;
      rangeRows.codes.set(combination, code);
    }
    const row = rangeRows.rows++;
    rangeRows.start_ns[row] = from + offset_ns;
    rangeRows.end_ns[row] = to + offset_ns;
    rangeRows.shape[row] = code;
  }
}

/**
 * Resolves the combinations of the ranges and drops nsys_range_texts. Needs trace_names.
 * @param rank SQL for a pid
 */
export async function resolveRanges(
  workbench: Workbench,
  rangeRows: RangeRows,
  rank: string,
): Promise<InMemoryRanges> {
  const { rows, codes, combinations } = rangeRows;
  const names = ['pid', 'tid', 'rank', 'name', 'process_wide'];
  const shapes: Columns = {};
  for (const name of names) shapes[name] = new Float64Array(combinations).fill(Number.NaN);
  for await (const { rows: count, columns } of workbench.scan(
    `SELECT shape, pid, tid, ${rank} AS rank, n.code AS name, process_wide
     FROM nsys_range_texts r LEFT JOIN trace_names n USING (text)`,
  )) {
    for (let i = 0; i < count; i++) {
      const code = codes.get(columns['shape']![i]!);
      if (code >= 0) for (const name of names) shapes[name]![code] = columns[name]![i]!;
    }
  }
  await workbench.run('DROP TABLE nsys_range_texts');
  return {
    rows,
    start_ns: rangeRows.start_ns.subarray(0, rows),
    end_ns: rangeRows.end_ns.subarray(0, rows),
    shape: rangeRows.shape.subarray(0, rows),
    shapes,
  };
}
