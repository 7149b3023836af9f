import { damaged } from './damage.js';
import type { BulkTable } from './sqlite-bulk.js';
import type { EventsRead, EventTarget } from './take-events.js';

/** The tables with a row an event, and the columns wanted of them; what changes from row to row is listed first. */
export const bulkTables = {
  kernel: {
    table: 'CUPTI_ACTIVITY_KIND_KERNEL',
    each: ['start', 'end', 'correlationId'],
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
    each: ['start', 'end', 'correlationId'],
    shape: ['globalPid', 'deviceId', 'contextId', 'streamId', 'graphId'],
  },
  memcpy: {
    table: 'CUPTI_ACTIVITY_KIND_MEMCPY',
    each: ['start', 'end', 'correlationId', 'bytes'],
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
    each: ['start', 'end', 'correlationId', 'bytes'],
    shape: ['globalPid', 'deviceId', 'contextId', 'streamId', 'memKind', 'graphNodeId'],
  },
  api: {
    table: 'CUPTI_ACTIVITY_KIND_RUNTIME',
    each: ['start', 'end', 'correlationId'],
    shape: ['globalTid', 'nameId', 'eventClass'],
  },
  nvtx: {
    table: 'NVTX_EVENTS',
    each: ['start', 'end', 'globalTid', 'endGlobalTid', 'eventType', 'textId', 'domainId'],
    shape: [],
    text: 'text',
  },
} as const satisfies Record<string, BulkTable>;

/** Columns that every export of nsys has in a table: one without them is another table, or damaged. */
export const identifying: readonly { table: string; columns: readonly string[] }[] = [
  { table: bulkTables.kernel.table, columns: ['start', 'end', 'deviceId', 'streamId', 'gridX'] },
  { table: bulkTables.graph.table, columns: ['start', 'end', 'deviceId', 'graphId'] },
  { table: bulkTables.memcpy.table, columns: ['start', 'end', 'bytes', 'copyKind'] },
  { table: bulkTables.memset.table, columns: ['start', 'end', 'bytes'] },
  { table: bulkTables.api.table, columns: ['start', 'end', 'globalTid', 'nameId'] },
  { table: bulkTables.nvtx.table, columns: ['start', 'end', 'globalTid', 'eventType'] },
  { table: 'StringIds', columns: ['id', 'value'] },
];

/** @param present of the table; undefined: the capture has none. @throws E_TRACE_FILE */
export function checkColumns(
  path: string,
  table: string,
  columns: readonly string[],
  present: readonly string[] | undefined,
): void {
  const lacking = present ? columns.filter((column) => !present.includes(column)) : [];
  if (lacking.length === 0) return;
  throw damaged(
    path,
    `${table} has no column ${lacking.join(', ')}: it is damaged, or another table under this name.`,
  );
}

export type Kind = keyof typeof bulkTables;
export type EventKind = Exclude<Kind, 'nvtx'>;
export const kinds = Object.keys(bulkTables) as Kind[];
export const eventKinds = kinds.filter((kind): kind is EventKind => kind !== 'nvtx');

/**
 * A capture's raw rows as the second half (trace.ts) sees them, whatever the file was: SQL whose columns have nsys's
 * own names, with null for what this schema version or row lacks; globalPid and globalTid are split (`pid`, `tid`,
 * `endTid`). Of nvtx there are whole rows, `text` as text.
 */
export interface NsysTables {
  /**
   * The columns `each` of bulkTables and `shape`, a key into shapes. Null when the capture has no such rows, or, but
   * for nvtx, when they are in memory.
   */
  rows: Record<Kind, string | null>;
  /** `shape` and the columns of bulkTables[].shape, which many rows share. */
  shapes: Record<Kind, string | null>;
  /**
   * Makes what `shapes` of a kind names, where reading has not.
   * @param firstRows of each combination, from 0, when the kind's rows were read; null: they are looked for in the file
   */
  combine(kind: EventKind, firstRows: readonly number[] | null): Promise<void>;
  /** (id BIGINT, value VARCHAR). */
  strings: string;
  /** Puts the rows of a kind into arrays, in the order of the file. Once. */
  read(kind: EventKind, target: EventTarget): Promise<EventsRead>;
  /** How many these are where they are in memory or in a Parquet file, whose footer tells; else 0. */
  counts: Record<EventKind, number>;
  /** Removes what they read from. */
  drop(): Promise<void>;
}
