import { damagedCapture } from './damage.js';
import type { BulkTable } from './sqlite-bulk.js';
import type { EventsRead, EventTarget } from './take-events.js';

/** The event tables and the required columns of each; columns that change per row come first. */
export const bulkTables = {
  kernel: {
    table: 'CUPTI_ACTIVITY_KIND_KERNEL',
    perRow: ['start', 'end', 'correlationId'],
    shape: [
      'globalPid',
      'deviceId',
      'contextId',
      'streamId',
      'demangledName',
      'shortName',
      'gridX',
      'gridY',
      'gridZ',
      'blockX',
      'blockY',
      'blockZ',
      'registersPerThread',
      'staticSharedMemory',
      'dynamicSharedMemory',
      'graphId',
      'graphNodeId',
    ],
  },
  graph: {
    table: 'CUPTI_ACTIVITY_KIND_GRAPH_TRACE',
    perRow: ['start', 'end', 'correlationId'],
    shape: ['globalPid', 'deviceId', 'contextId', 'streamId', 'graphId'],
  },
  memcpy: {
    table: 'CUPTI_ACTIVITY_KIND_MEMCPY',
    perRow: ['start', 'end', 'correlationId', 'bytes'],
    shape: [
      'globalPid',
      'deviceId',
      'contextId',
      'streamId',
      'copyKind',
      'srcKind',
      'dstKind',
      'graphNodeId',
    ],
  },
  memset: {
    table: 'CUPTI_ACTIVITY_KIND_MEMSET',
    perRow: ['start', 'end', 'correlationId', 'bytes'],
    shape: ['globalPid', 'deviceId', 'contextId', 'streamId', 'memKind', 'graphNodeId'],
  },
  api: {
    table: 'CUPTI_ACTIVITY_KIND_RUNTIME',
    perRow: ['start', 'end', 'correlationId'],
    shape: ['globalTid', 'nameId', 'eventClass'],
  },
  nvtx: {
    table: 'NVTX_EVENTS',
    perRow: ['start', 'end', 'globalTid', 'endGlobalTid', 'eventType', 'textId', 'domainId'],
    shape: [],
    text: 'text',
  },
} as const satisfies Record<string, BulkTable>;

/** Columns that every nsys export has in a table; without them it is another table, or damaged. */
export const identifying: readonly { table: string; columns: readonly string[] }[] = [
  { table: bulkTables.kernel.table, columns: ['start', 'end', 'deviceId', 'streamId', 'gridX'] },
  { table: bulkTables.graph.table, columns: ['start', 'end', 'deviceId', 'graphId'] },
  { table: bulkTables.memcpy.table, columns: ['start', 'end', 'bytes', 'copyKind'] },
  { table: bulkTables.memset.table, columns: ['start', 'end', 'bytes'] },
  { table: bulkTables.api.table, columns: ['start', 'end', 'globalTid', 'nameId'] },
  { table: bulkTables.nvtx.table, columns: ['start', 'end', 'globalTid', 'eventType'] },
  { table: 'StringIds', columns: ['id', 'value'] },
];

/**
 * @param present columns of the table; undefined: the capture lacks the table.
 * @throws E_TRACE_FILE
 */
export function checkColumns(
  path: string,
  table: string,
  columns: readonly string[],
  present: readonly string[] | undefined,
): void {
  const missing = present ? columns.filter((column) => !present.includes(column)) : [];
  if (missing.length === 0) return;
  throw damagedCapture(
    path,
    `${table} has no column ${missing.join(', ')}: it is damaged, or a different table with this name.`,
  );
}

export type Kind = keyof typeof bulkTables;
export type EventKind = Exclude<Kind, 'nvtx'>;
export const kinds = Object.keys(bulkTables) as Kind[];
export const eventKinds = kinds.filter((kind): kind is EventKind => kind !== 'nvtx');

/**
 * A capture's raw rows for the second half of the import (trace.ts), independent of the file format: SQL with nsys's column names,
 * and null for values that this schema version or row lacks; globalPid and globalTid are split (`pid`, `tid`,
 * `endTid`). nvtx has whole rows, with `text` as text.
 */
export interface NsysTables {
  /**
   * The columns `perRow` of bulkTables and `shape`, a key into shapes. Null if the capture has no such rows, or (except
   * for nvtx) if they are in memory.
   */
  rows: Record<Kind, string | null>;
  /** `shape` and the columns of bulkTables[].shape, which many rows share. */
  shapes: Record<Kind, string | null>;
  /**
   * Creates the table that `shapes` names for a kind, unless reading has already created it.
   * @param firstRows first row per combination, from 0, when the kind's rows were read; null: search the file
   */
  combine(kind: EventKind, firstRows: readonly number[] | null): Promise<void>;
  /** (id BIGINT, value VARCHAR). */
  strings: string;
  /** Writes the rows of a kind into arrays, in file order. Call once. */
  read(kind: EventKind, target: EventTarget): Promise<EventsRead>;
  /** Number of rows if known: in memory, or from a Parquet footer; else 0. */
  counts: Record<EventKind, number>;
  /** Drops the tables that the rows were read from. */
  drop(): Promise<void>;
}
