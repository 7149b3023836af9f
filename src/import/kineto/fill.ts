import type { BulkWriter, Columns, Workbench } from '../../model/workbench.js';
import { createTraceTables, noName, type TraceTable } from '../trace-tables.js';
import { type Batch, type BatchTable, batchColumns } from './batch.js';
import { copyKind } from './copy-kind.js';
import { createIdSet } from './id-set.js';
import { shortKernelName } from './short-name.js';

/** Operators without an External id of their own (Python calls, old files) are numbered from here, above all real ids. */
const ownIdsFrom = 2 ** 32;

export interface FilledTables {
  rows: Record<BatchTable, number>;
  /** Operators with the External id of another operator; they get new ids. */
  sharedIds: number;
  /** Events without a name. */
  unnamed: number;
}

interface TraceFill {
  /** @param source the parser that the codes come from */
  add(batch: Batch, source: number): void;
  /** Finishes the tables and creates trace_names. */
  finish(): Promise<FilledTables>;
  /** Closes the writers; the unfinished tables must then be dropped. */
  abandon(): void;
}

/** Writes parser batches into the trace tables and `kineto_memory`. */
export async function createTraceFill(
  workbench: Workbench,
  {
    rank,
    redact = (text: string) => text,
  }: { rank: number; redact?: ((text: string) => string) | undefined },
): Promise<TraceFill> {
  const writers: Record<TraceTable, BulkWriter> = await createTraceTables(workbench);
  await workbench.run('DROP TABLE IF EXISTS kineto_memory');
  const memory = await workbench.createTable('kineto_memory', batchColumns.memory);
  await workbench.run('DROP TABLE IF EXISTS kineto_collectives');
  const collectives = await workbench.createTable('kineto_collectives', batchColumns.collectives);

  const codes = new Map<string, number>();
  const shortCodes: number[] = [];
  const copyCodes: { kind: number; src_kind: number; dst_kind: number }[] = [];
  const isHipCode: boolean[] = [];
  const sources: number[][] = [];
  const operatorIds = createIdSet();
  const referencedIds = createIdSet();
  const rows = { kernels: 0, copies: 0, api: 0, ranges: 0, ops: 0, collectives: 0, memory: 0 };
  let ownIds = 0;
  let sharedIds = 0;
  let rangeIds = 0;
  let unnamed = 0;
  let hostPid = Number.NaN;
  let withoutPid = false;

  function codeOf(text: string): number {
    let code = codes.get(text);
    if (code === undefined) codes.set(text, (code = codes.size));
    return code;
  }
  const optionalCode = (text: string | null) => (text === null ? Number.NaN : codeOf(text));
  const cpuOp = codeOf('cpu_op');
  const python = codeOf('python_function');
  const apis = { runtime: codeOf('runtime'), driver: codeOf('driver'), hip: codeOf('hip') };

  /** Converts a parser's codes to codes of trace_names, in place. */
  function recode(column: Float64Array, codeMap: number[]): void {
    for (let i = 0; i < column.length; i++) {
      const code = column[i]!;
      if (code === code) column[i] = codeMap[code]!;
    }
  }

  function recodeNames(column: Float64Array, codeMap: number[]): void {
    recode(column, codeMap);
    for (let i = 0; i < column.length; i++) {
      if (column[i] === column[i]) continue;
      column[i] = codeOf(noName);
      unnamed++;
    }
  }

  function shortName(code: number): number {
    return (shortCodes[code] ??= codeOf(shortKernelName(textOf(code))));
  }

  const texts: string[] = [];
  function textOf(code: number): string {
    if (texts.length < codes.size) {
      let offset = 0;
      for (const text of codes.keys()) if (offset++ >= texts.length) texts.push(text);
    }
    return texts[code]!;
  }

  function constant(value: number, length: number): Float64Array {
    return new Float64Array(length).fill(value);
  }

  function findHostPid(pids: Float64Array): void {
    for (let i = 0; hostPid !== hostPid && i < pids.length; i++) if (pids[i]! > 0) hostPid = pids[i]!;
  }

  function collectReferencedIds(ids: Float64Array): void {
    for (let i = 0; i < ids.length; i++) {
      const id = ids[i]!;
      // 0 is "none"; ids beyond the set's range belong to no known operator.
      if (id > 0 && id < ownIdsFrom) referencedIds.add(id);
      else ids[i] = Number.NaN;
    }
  }

  return {
    add(batch, source) {
      const codeMap = (sources[source] ??= []);
      for (const text of batch.texts) codeMap.push(codeOf(redact(text)));
      const api = rowsOf(batch, 'api');
      const ops = rowsOf(batch, 'ops');
      const ranges = rowsOf(batch, 'ranges');
      for (const table of [api.columns, ranges.columns, ops.columns]) findHostPid(table['pid']!);

      const kernels = rowsOf(batch, 'kernels');
      const copies = rowsOf(batch, 'copies');
      if (hostPid !== hostPid && kernels.rows + copies.rows > 0) withoutPid = true;
      fillActivities(kernels, copies, codeMap);
      fillCalls(api, codeMap);
      fillRanges(ranges, codeMap);
      fillOps(ops, codeMap);
      for (const [table, { columns, rows: n }] of Object.entries({ kernels, copies, api, ranges, ops })) {
        rows[table as BatchTable] += n;
        if (n > 0) writers[`trace_${table}` as TraceTable].append(columns, n);
      }
      const allocations = rowsOf(batch, 'memory');
      rows.memory += allocations.rows;
      if (allocations.rows > 0) memory.append(allocations.columns, allocations.rows);
      const calls = rowsOf(batch, 'collectives');
      rows.collectives += calls.rows;
      for (const column of ['name', 'group', 'group_ranks', 'group_text', 'dtype'])
        recode(calls.columns[column]!, codeMap);
      if (calls.rows > 0) collectives.append(calls.columns, calls.rows);
    },
    async finish() {
      for (const writer of [...Object.values(writers), memory, collectives]) writer.close();
      await workbench.createNames('trace_names', codes.keys());
      if (withoutPid && hostPid === hostPid) {
        for (const table of ['trace_kernels', 'trace_copies'])
          await workbench.run(`UPDATE ${table} SET pid = ${hostPid} WHERE isnan(pid)`);
      }
      await forgetUnknownOps(workbench, referencedIds.without(operatorIds));
      return { rows, sharedIds, unnamed };
    },
    abandon() {
      for (const writer of [...Object.values(writers), memory, collectives]) writer.close();
    },
  };

  function fillActivities(kernels: TableRows, copies: TableRows, codeMap: number[]): void {
    for (const { columns, rows: n } of [kernels, copies]) {
      recodeNames(columns['name']!, codeMap);
      collectReferencedIds(columns['external']!);
      columns['op_id'] = columns['external']!;
      columns['pid'] = constant(hostPid, n);
      columns['rank'] = constant(rank, n);
    }
    recode(kernels.columns['grid']!, codeMap);
    recode(kernels.columns['block']!, codeMap);
    kernels.columns['short_name'] = kernels.columns['name']!.map((code) =>
      code === code ? shortName(code) : code,
    );
    kernels.columns['opaque_graph'] = constant(0, kernels.rows);
    const kinds = [...copies.columns['name']!].map((code) => kindOf(code));
    for (const field of ['kind', 'src_kind', 'dst_kind'] as const) {
      copies.columns[field] = Float64Array.from(kinds, (kind) => kind[field]);
    }
  }

  function fillCalls(api: TableRows, codeMap: number[]): void {
    recodeNames(api.columns['name']!, codeMap);
    api.columns['rank'] = constant(rank, api.rows);
    api.columns['api'] = api.columns['driver']!.map((driver, i) =>
      isHip(api.columns['name']![i]!) ? apis.hip : driver === 1 ? apis.driver : apis.runtime,
    );
  }

  function fillRanges(ranges: TableRows, codeMap: number[]): void {
    recodeNames(ranges.columns['name']!, codeMap);
    ranges.columns['rank'] = constant(rank, ranges.rows);
    ranges.columns['range_id'] = constant(0, ranges.rows).map(() => rangeIds++);
    ranges.columns['process_wide'] = constant(0, ranges.rows);
  }

  function fillOps(ops: TableRows, codeMap: number[]): void {
    recodeNames(ops.columns['name']!, codeMap);
    for (const column of ['input_shapes', 'input_types']) recode(ops.columns[column]!, codeMap);
    ops.columns['rank'] = constant(rank, ops.rows);
    ops.columns['op_type'] = ops.columns['python']!.map((flag) => (flag === 1 ? python : cpuOp));
    ops.columns['op_id'] = ops.columns['external']!.map(opId);
  }

  function opId(external: number): number {
    if (external > 0 && external < ownIdsFrom) {
      if (!operatorIds.has(external)) {
        operatorIds.add(external);
        return external;
      }
      sharedIds++;
    }
    return ownIdsFrom + ownIds++;
  }

  function isHip(code: number): boolean {
    return code === code && (isHipCode[code] ??= textOf(code).startsWith('hip'));
  }

  function kindOf(code: number) {
    if (code !== code) return { kind: Number.NaN, src_kind: Number.NaN, dst_kind: Number.NaN };
    const knownKind = copyCodes[code];
    if (knownKind) return knownKind;
    const { kind, src_kind, dst_kind } = copyKind(textOf(code));
    return (copyCodes[code] = {
      kind: optionalCode(kind),
      src_kind: optionalCode(src_kind),
      dst_kind: optionalCode(dst_kind),
    });
  }
}

interface TableRows {
  columns: Columns;
  rows: number;
}

function rowsOf(batch: Batch, table: BatchTable): TableRows {
  const { rows, values } = batch.tables[table];
  const columns: Columns = {};
  batchColumns[table].forEach((name, c) => {
    columns[name] = values.subarray(c * rows, (c + 1) * rows);
  });
  return { columns, rows };
}

/**
 * An External id may belong to an annotation, or to an operator outside the window: then the operator is found through the
 * API call.
 */
async function forgetUnknownOps(workbench: Workbench, ids: number[]): Promise<void> {
  if (ids.length === 0) return;
  const writer = await workbench.createTable('kineto_unknown', ['op_id']);
  writer.append({ op_id: Float64Array.from(ids) }, ids.length);
  writer.close();
  for (const table of ['trace_kernels', 'trace_copies']) {
    await workbench.run(
      `UPDATE ${table} SET op_id = 'nan'::DOUBLE WHERE op_id IN (SELECT op_id FROM kineto_unknown)`,
    );
  }
  await workbench.run('DROP TABLE kineto_unknown');
}
