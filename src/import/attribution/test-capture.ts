import { type TraceTable, createTraceTables } from '../trace-tables.js';
import { attribute } from './attribute.js';
import { type Imported, importWith } from './test-import.js';

type Rows = Partial<Record<TraceTable, Record<string, number | string>[]>>;

const texts = new Set([
  'name',
  'short_name',
  'grid',
  'block',
  'kind',
  'src_kind',
  'dst_kind',
  'api',
  'op_type',
]);

/** A hand-written capture with plain texts; process 7, thread 1, device 0, stream 1 unless given. */
export function capture(rows: Rows): Promise<Imported> {
  return importWith(async ({ workbench }, context) => {
    const names: string[] = [];
    const writers = await createTraceTables(workbench);
    for (const [table, tableRows] of Object.entries(rows) as [
      TraceTable,
      Record<string, number | string>[],
    ][]) {
      for (const row of tableRows) {
        const columns: Record<string, Float64Array> = {};
        const keys = { pid: 7, tid: 1, rank: 0, device: 0, context: 1, stream: 1, process_wide: 0 };
        for (const [key, value] of Object.entries({ ...keys, ...row })) {
          if (typeof value === 'string' && !names.includes(value)) names.push(value);
          const number = texts.has(key) ? names.indexOf(String(value)) : Number(value);
          columns[key] = new Float64Array([number]);
        }
        writers[table].append(columns, 1);
      }
    }
    for (const writer of Object.values(writers)) writer.close();
    await workbench.createNames('trace_names', names);
    return attribute(workbench, context);
  });
}

export const launch = (start_ns: number, dur_ns: number, correlation: number, fields = {}) => ({
  start_ns,
  dur_ns,
  correlation,
  name: 'cudaLaunchKernel',
  api: 'runtime',
  ...fields,
});
export const kernel = (start_ns: number, dur_ns: number, correlation: number, fields = {}) => ({
  start_ns,
  dur_ns,
  correlation,
  name: 'nvjet_sm90_hsh_64x8_64x16_1x1_v_bz_TNN',
  ...fields,
});
export const range = (range_id: number, name: string, start_ns: number, end_ns: number, fields = {}) => ({
  range_id,
  name,
  start_ns,
  end_ns,
  ...fields,
});

export const op = (op_id: number, name: string, start_ns: number, dur_ns: number) => ({
  op_id,
  name,
  start_ns,
  dur_ns,
  op_type: 'cpu_op',
});
