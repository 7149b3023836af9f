import type { BulkWriter, Workbench } from '../model/workbench.js';

/**
 * The workbench tables that readers of timeline formats (nsys, Kineto, …) fill and attribution uses. Times are ns since
 * the session's start. Texts are codes of the table `trace_names (code, text)`, or null. All tables exist, and are
 * empty if the source has no data. A reader may create them in bulk from TypeScript (`createTraceTables`) or by SQL.
 */
export const traceTables = {
  /** Device kernels, and whole CUDA graphs if the profiler recorded only those (`opaque_graph` = 1). */
  trace_kernels: [
    'start_ns',
    'dur_ns',
    'pid',
    'rank',
    'device',
    'context',
    'stream',
    'correlation',
    /** Full demangled name. */
    'name',
    'short_name',
    /** Codes of 'x,y,z'. */
    'grid',
    'block',
    'registers',
    'shared_mem_bytes',
    'graph_id',
    'graph_node',
    'opaque_graph',
    /** op_id of the launching operator if the source records it (Kineto's External id); else null. */
    'op_id',
  ],
  trace_copies: [
    'start_ns',
    'dur_ns',
    'pid',
    'rank',
    'device',
    'context',
    'stream',
    'correlation',
    /** HtoD, DtoH, DtoD, HtoH, PtoP, memset. */
    'kind',
    'src_kind',
    'dst_kind',
    'bytes',
    'graph_node',
    'op_id',
  ],
  /** Runtime and driver calls. `tid` is unique within `pid`. */
  trace_api: ['start_ns', 'dur_ns', 'pid', 'tid', 'rank', 'correlation', 'name', 'api'],
  /** NVTX ranges and record_function annotations. end_ns null: never closed. */
  trace_ranges: [
    'range_id',
    'start_ns',
    'end_ns',
    'pid',
    'tid',
    /** Thread that closed it, if different. */
    'end_tid',
    'rank',
    'name',
    /** 1: start/end range, which belongs to the process; 0: push/pop, which belongs to its thread. */
    'process_wide',
  ],
  /** Framework operators and, with stacks on, Python calls. Nested by time within (pid, tid). */
  trace_ops: [
    'op_id',
    'start_ns',
    'dur_ns',
    'pid',
    'tid',
    'rank',
    'name',
    /** cpu_op, python_function, … */
    'op_type',
    /** Codes of JSON texts. */
    'input_shapes',
    'input_types',
    'allocated_bytes',
  ],
} as const satisfies Record<string, readonly string[]>;

/** Placeholder name of an event without a name in the capture; such events are counted. */
export const noName = '(no name)';

/** Names are truncated to this length: template arguments of real kernels take up to 10,000 characters. */
export const maxNameLength = 2 ** 14;

/** Upper limit of a copy's size: 256 TiB. */
export const maxCopyBytes = 2 ** 48;

export type TraceTable = keyof typeof traceTables;

/** Creates the tables and their writers; the reader creates `trace_names` when it knows all names. */
export async function createTraceTables(workbench: Workbench): Promise<Record<TraceTable, BulkWriter>> {
  const writers: Partial<Record<TraceTable, BulkWriter>> = {};
  for (const table of Object.keys(traceTables) as TraceTable[]) {
    writers[table] = await workbench.createTable(table, traceTables[table]);
  }
  return writers as Record<TraceTable, BulkWriter>;
}

/** Drops the tables for the next capture. */
export async function dropTraceTables(workbench: Workbench): Promise<void> {
  for (const table of [...Object.keys(traceTables), 'trace_names'])
    await workbench.run(`DROP TABLE IF EXISTS ${table}`);
}
