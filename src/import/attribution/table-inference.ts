import type { Workbench } from '../../model/workbench.js';
import type { StageName } from '../stage-names.js';
import {
  type Inference,
  inferRanges,
  inferredNames,
  type InferredRange,
  type LaunchedKernels,
  type MarkedRange,
  type ProcessKernels,
  type SampledKernels,
} from './infer-ranges.js';

/** SQL: a number of a trace table; NaN, which is null in tables filled in bulk, becomes null. */
const number = (column: string) => `nullif(${column}::DOUBLE, 'nan'::DOUBLE)`;

/**
 * Infers steps of a capture in trace tables.
 * @param label by the code of a name
 */
export async function inferFromTables(
  workbench: Workbench,
  label: (code: number) => StageName,
): Promise<Inference> {
  const namesOf = async (table: string) =>
    (
      await workbench.query<{ text: string }>(
        `SELECT text::VARCHAR AS text FROM trace_names SEMI JOIN ${table} t ON t.name = code WHERE text IS NOT NULL`,
      )
    ).map(({ text }) => text);
  return inferRanges({
    kernelNames: await namesOf('trace_kernels'),
    rangeNames: await namesOf('trace_ranges'),
    marks: (isMark) => selectMarks(workbench, label, isMark),
    processes: () => processKernels(workbench),
  });
}

async function selectMarks(
  workbench: Workbench,
  label: (code: number) => StageName,
  isMark: (label: StageName) => boolean,
): Promise<MarkedRange[]> {
  const names = await workbench.query<{ name: number }>(
    `SELECT DISTINCT name::DOUBLE AS name FROM trace_ranges WHERE ${number('name')} IS NOT NULL`,
  );
  const markedNames = names.flatMap(({ name }) => (isMark(label(name)) ? [name] : []));
  if (markedNames.length === 0) return [];
  const ranges: MarkedRange[] = [];
  const scan = workbench.scan(
    `SELECT pid::DOUBLE AS pid, start_ns::DOUBLE AS start_ns, end_ns::DOUBLE AS end_ns, name::DOUBLE AS name FROM trace_ranges
     WHERE name IN (${markedNames.join(', ')}) AND ${number('end_ns')} IS NOT NULL ORDER BY range_id`,
  );
  for await (const { rows, columns } of scan)
    for (let i = 0; i < rows; i++)
      ranges.push({
        pid: columns['pid']![i]!,
        startNs: columns['start_ns']![i]!,
        endNs: columns['end_ns']![i]!,
        label: label(columns['name']![i]!),
      });
  return ranges;
}

async function* processKernels(workbench: Workbench): AsyncIterable<ProcessKernels> {
  const groups = await workbench.query<{ pid: number; device: number; rank: number; rows: number }>(
    `SELECT pid, device, rank, rows FROM (
       SELECT ${number('pid')} AS pid, ${number('device')} AS device, min(${number('rank')}) AS rank, count(*)::DOUBLE AS rows,
         sum(${number('dur_ns')}) AS ns FROM trace_kernels GROUP BY 1, 2)
     WHERE pid IS NOT NULL AND device >= 0 AND ns > 0
     QUALIFY row_number() OVER (PARTITION BY pid ORDER BY ns DESC, device) = 1 ORDER BY pid`,
  );
  for (const { pid, device, rank, rows } of groups) {
    const kernelsSql = `FROM trace_kernels WHERE pid = ${pid} AND device = ${device}`;
    yield {
      pid,
      rank,
      rows,
      sample: (stride) => sampleKernels(workbench, pid, kernelsSql, stride),
      sequence: () => readSequence(workbench, pid, rows, kernelsSql),
    };
  }
}

async function sampleKernels(
  workbench: Workbench,
  pid: number,
  kernelsSql: string,
  stride: number,
): Promise<SampledKernels> {
  const rows = await workbench.query<{ dur_ns: number; called_ns: number }>(
    `WITH sampled AS (
       SELECT row_number() OVER () AS id, start_ns, dur_ns, ${number('correlation')} AS correlation ${kernelsSql} AND hash(start_ns) % ${stride} = 0)
     SELECT any_value(s.dur_ns)::DOUBLE AS dur_ns, coalesce(min(a.start_ns), any_value(s.start_ns))::DOUBLE AS called_ns
     FROM sampled s LEFT JOIN (SELECT correlation, start_ns FROM trace_api WHERE pid = ${pid}) a ON a.correlation = s.correlation GROUP BY s.id`,
  );
  return {
    dur_ns: Float64Array.from(rows, ({ dur_ns: ns }) => ns),
    called_ns: Float64Array.from(rows, ({ called_ns: ns }) => ns),
  };
}

async function readSequence(
  workbench: Workbench,
  pid: number,
  rows: number,
  kernelsSql: string,
): Promise<LaunchedKernels> {
  const texts = new Map(
    (
      await workbench.query<{ code: number; text: string }>(
        `SELECT code::DOUBLE AS code, text::VARCHAR AS text FROM trace_names
         SEMI JOIN (SELECT name AS used FROM trace_kernels UNION ALL SELECT grid FROM trace_kernels) ON used = code`,
      )
    ).map(({ code, text }) => [code, text]),
  );
  const launches: { name: string; grid: string | null }[] = [];
  const codes = new Map<number, number>();
  const code = new Int32Array(rows);
  const [start_ns, dur_ns, correlation] = [0, 0, 0].map(() => new Float64Array(rows)) as [
    Float64Array,
    Float64Array,
    Float64Array,
  ];
  const scan = workbench.scan(
    `SELECT start_ns::DOUBLE AS start_ns, dur_ns::DOUBLE AS dur_ns, correlation::DOUBLE AS correlation, name::DOUBLE AS name, grid::DOUBLE AS grid ${kernelsSql}`,
  );
  let row = 0;
  for await (const { rows: count, columns } of scan) {
    for (let i = 0; i < count; i++, row++) {
      const name = columns['name']![i]!;
      const grid = columns['grid']![i]!;
      // Codes are below 2^26, so the pair fits a double.
      const key = name * 2 ** 26 + (Number.isNaN(grid) ? 2 ** 26 - 1 : grid);
      let launchCode = codes.get(key);
      if (launchCode === undefined) {
        codes.set(key, (launchCode = launches.length));
        launches.push({ name: texts.get(name) ?? '', grid: texts.get(grid) ?? null });
      }
      code[row] = launchCode;
      start_ns[row] = columns['start_ns']![i]!;
      dur_ns[row] = columns['dur_ns']![i]!;
      correlation[row] = columns['correlation']![i]!;
    }
  }
  sortByStart(start_ns, [code, start_ns, dur_ns, correlation]);
  return {
    kernels: { rows, code, start_ns, dur_ns, launches },
    launches: (wanted) =>
      loadCalls(
        workbench,
        pid,
        Float64Array.from(wanted, (wantedRow) => correlation[wantedRow]!),
      ),
  };
}

/** Rows by start, those that start together as in the file; most profilers write them so. */
function sortByStart(start: Float64Array, columns: readonly (Float64Array | Int32Array)[]): void {
  if (start.every((time, i) => i === 0 || time >= start[i - 1]!)) return;
  const order = Uint32Array.from(start.keys()).sort((a, b) => start[a]! - start[b]! || a - b);
  const sorted = columns.map((column) => column.map((_, i) => column[order[i]!]!));
  for (const [i, column] of columns.entries()) column.set(sorted[i]!);
}

async function loadCalls(workbench: Workbench, pid: number, ids: Float64Array) {
  const knownIds = [...new Set(ids)].filter((id) => !Number.isNaN(id));
  const calls = new Map<number, { start: number; dur: number; tid: number }>();
  if (knownIds.length > 0) {
    const scan = workbench.scan(
      `SELECT correlation::DOUBLE AS id, min(start_ns)::DOUBLE AS start, arg_min(dur_ns, start_ns)::DOUBLE AS dur, arg_min(tid, start_ns)::DOUBLE AS tid
       FROM trace_api WHERE pid = ${pid} AND correlation IN (${knownIds.join(', ')}) GROUP BY correlation`,
    );
    for await (const { rows, columns } of scan)
      for (let i = 0; i < rows; i++)
        calls.set(columns['id']![i]!, {
          start: columns['start']![i]!,
          dur: columns['dur']![i]!,
          tid: columns['tid']![i]!,
        });
  }
  const callColumn = (value: (call: { start: number; dur: number; tid: number }) => number) =>
    Float64Array.from(ids, (id) => {
      const call = calls.get(id);
      return call ? value(call) : Number.NaN;
    });
  return {
    start_ns: callColumn(({ start }) => start),
    end_ns: callColumn(({ start, dur }) => start + dur),
    tid: callColumn(({ tid }) => tid),
  };
}

/** Adds inferred ranges to trace_ranges, and their names to trace_names. */
export async function addInferredRanges(
  workbench: Workbench,
  ranges: readonly InferredRange[],
): Promise<{ code: number; label: StageName }[]> {
  if (ranges.length === 0) return [];
  const [last] = await workbench.query<{ code: number; id: number }>(
    `SELECT coalesce(max(code), -1)::DOUBLE AS code, coalesce((SELECT max(${number('range_id')}) FROM trace_ranges), -1)::DOUBLE AS id FROM trace_names`,
  );
  const { codes, names } = inferredNames(ranges, last!.code + 1);
  await workbench.run(
    `INSERT INTO trace_names (code, text) VALUES ${names.map(({ code, text }) => `(${code}, '${text}')`).join(', ')}`,
  );
  const sqlNumber = (value: number) => (Number.isNaN(value) ? 'NULL' : String(value));
  const rows = ranges.map(
    ({ pid, tid, rank, startNs, endNs }, i) =>
      `(${[last!.id + 1 + i, startNs, endNs, pid, tid, rank, codes[i]!, 1].map(sqlNumber).join(', ')})`,
  );
  await workbench.run(
    `INSERT INTO trace_ranges (range_id, start_ns, end_ns, pid, tid, rank, name, process_wide) VALUES ${rows.join(', ')}`,
  );
  return names;
}
