import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Workbench } from '../../model/workbench.js';
import { createSession } from '../../session/create.js';
import { homeFolders } from '../../session/home.js';
import { nsysStats } from './test-nsys-stats.js';
import { openParquetdir } from './parquetdir.js';
import { openSqlite } from './sqlite-file.js';
import { loadSqlite } from './sqlite-load.js';
import { dropTraceTables } from '../trace-tables.js';
import { createTrace } from './trace.js';

const fixtures = 'test/fixtures/nsys-2025.3.1-h200';
const home = mkdtempSync(join(tmpdir(), 'inferscope-nsys-test-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** The trace tables of a capture, for the time of `use`. */
async function withTrace<T>(path: string, use: (workbench: Workbench) => Promise<T>): Promise<T> {
  const session = await createSession({
    kind: 'import',
    label: 'nsys',
    home: homeFolders({ INFERSCOPE_HOME: home }),
  });
  try {
    const { workbench } = session;
    const file = path.endsWith('.sqlite') ? openSqlite(path) : null;
    const tables = file ? await loadSqlite(file, workbench) : await openParquetdir(path, workbench);
    expect((await createTrace(workbench, tables, 0)).issues).toEqual([]);
    const result = await use(workbench);
    await dropTraceTables(workbench);
    file?.close();
    const remainingTables = await workbench.query(
      "SELECT table_name FROM information_schema.tables WHERE table_name ~ '^(nsys|trace)_'",
    );
    expect(remainingTables).toEqual([]);
    return result;
  } finally {
    await session.abandon();
  }
}

const statistics = (
  column: string,
) => `avg(${column}) AS avg, median(${column}) AS med, min(${column}) AS min,
  max(${column}) AS max, coalesce(stddev_samp(${column}), 0) AS sd`;

/** Numbers in the format of nsys. */
function asPrinted<T extends Record<string, unknown>>(rows: T[]): Record<string, unknown>[] {
  return rows.map((row) => {
    const digits = (name: string, count: number) => ({ [name]: (row[name] as number).toFixed(count) });
    return {
      ...row,
      ...digits('avg', 1),
      ...digits('med', 1),
      ...digits('min', 0),
      ...digits('max', 0),
      ...digits('sd', 1),
    };
  });
}

const kernels = `SELECT k.*, n.text AS kernel FROM trace_kernels k JOIN trace_names n ON n.code = k.name`;

const oracle = [
  ['tiny-nsys.sqlite', 'tiny-nsys'],
  ['tiny-nsys.parquetdir', 'tiny-nsys'],
  ['tiny-graph.sqlite', 'tiny-graph'],
  ['tiny-graph-opaque.sqlite', 'tiny-graph-opaque'],
  ['tiny-whole.sqlite', 'tiny-whole'],
].map(([file, stats]) => ({ path: `${fixtures}/${file}`, stats: `${fixtures}/nsys-stats/${stats}` }));

describe.each(oracle)('$path against nsys stats', ({ path, stats }) => {
  test('cuda_gpu_kern_sum', async () => {
    const rows = await withTrace(path, (workbench) =>
      workbench.query<
        Record<string, unknown>
      >(`SELECT kernel, sum(dur_ns) AS total, count(*) AS n, ${statistics('dur_ns')}
        FROM (${kernels}) WHERE opaque_graph = 0 GROUP BY 1 ORDER BY total DESC, kernel`),
    );
    const nsysRows = nsysStats(stats, 'cuda_gpu_kern_sum').map((row) => ({
      kernel: row['Name'],
      total: Number(row['Total Time (ns)']),
      n: Number(row['Instances']),
      ...nsysStatistics(row),
    }));
    expect(asPrinted(rows)).toEqual(sorted(nsysRows, 'kernel'));
    expect(rows.length).toBeGreaterThan(0);
  });

  test('cuda_gpu_mem_time_sum and cuda_gpu_mem_size_sum', async () => {
    const rows = await withTrace(path, (workbench) =>
      workbench.query<Record<string, unknown>>(
        `SELECT n.text AS kind, sum(dur_ns) AS total, count(*) AS n, ${statistics('dur_ns')},
        printf('%.3f', sum(bytes) / 1e6) AS mb FROM trace_copies c JOIN trace_names n ON n.code = c.kind
        GROUP BY 1 ORDER BY total DESC, kind`,
      ),
    );
    const sizes = new Map(
      nsysStats(stats, 'cuda_gpu_mem_size_sum').map((row) => [row['Operation'], row['Total (MB)']]),
    );
    const nsysRows = nsysStats(stats, 'cuda_gpu_mem_time_sum').map((row) => ({
      kind: operations[row['Operation']!],
      total: Number(row['Total Time (ns)']),
      n: Number(row['Count']),
      ...nsysStatistics(row),
      mb: sizes.get(row['Operation']!),
    }));
    expect(asPrinted(rows)).toEqual(sorted(nsysRows, 'kind'));
  });

  test('cuda_api_sum', async () => {
    const rows = await withTrace(path, (workbench) =>
      workbench.query<
        Record<string, unknown>
      >(`SELECT n.text AS call, sum(dur_ns) AS total, count(*) AS n, ${statistics('dur_ns')}
        FROM trace_api a JOIN trace_names n ON n.code = a.name GROUP BY 1 ORDER BY total DESC, call`),
    );
    const nsysRows = nsysStats(stats, 'cuda_api_sum').map((row) => ({
      // nsys stats removes only suffixes of four digits.
      call: row['Name']!.replace(/_v\d+$/, ''),
      total: Number(row['Total Time (ns)']),
      n: Number(row['Num Calls']),
      ...nsysStatistics(row),
    }));
    expect(asPrinted(rows)).toEqual(sorted(nsysRows, 'call'));
  });

  test('cuda_kern_exec_sum: launches, queue times and threads', async () => {
    const rows = await withTrace(path, (workbench) =>
      workbench.query<
        Record<string, unknown>
      >(`SELECT a.pid, a.tid, device, call.text AS call, kernel, count(*) AS n,
        count(*) FILTER (queue > 0) AS queued, CAST(sum(total) AS BIGINT) AS total, sum(a.dur_ns) AS api,
        coalesce(sum(queue) FILTER (queue > 0), 0) AS queue, sum(k.dur_ns) AS kernel_ns
        FROM (SELECT *, start_ns AS kernel_start FROM (${kernels})) k
        JOIN trace_api a USING (pid, correlation) JOIN trace_names call ON call.code = a.name,
        LATERAL (SELECT k.kernel_start - a.start_ns - a.dur_ns AS queue,
          greatest(k.kernel_start + k.dur_ns, a.start_ns + a.dur_ns) - a.start_ns AS total)
        WHERE k.opaque_graph = 0
        GROUP BY ALL ORDER BY total DESC, kernel, call`),
    );
    const nsysRows = nsysStats(stats, 'cuda_kern_exec_sum').map((row) => ({
      pid: Number(row['PID']),
      tid: Number(row['TID']),
      device: Number(row['DevId']),
      call: row['API Name']!.replace(/_v\d+$/, ''),
      kernel: row['Kernel Name'],
      n: Number(row['Count']),
      queued: Number(row['QCount']),
      total: row['TAvg (ns)'],
      api: row['AAvg (ns)'],
      queue: row['QAvg (ns)'] ?? '',
      kernel_ns: row['KAvg (ns)'],
    }));
    expect(rows.length).toBe(nsysRows.length);
    const key = (row: object) => JSON.stringify(row);
    const averages = rows.map((average) => {
      const row = average as Record<string, number>;
      const meanText = (sum: number, n: number) => (n === 0 ? '' : (sum / n).toFixed(1));
      return {
        ...row,
        total: meanText(row['total']!, row['n']!),
        api: meanText(row['api']!, row['n']!),
        queue: meanText(row['queue']!, row['queued']!),
        kernel_ns: meanText(row['kernel_ns']!, row['n']!),
      };
    });
    expect(averages.map(key).sort()).toEqual(nsysRows.map(key).sort());
  });

  test('nvtx_sum', async () => {
    const rows = await withTrace(path, (workbench) =>
      workbench.query<
        Record<string, unknown>
      >(`SELECT n.text AS range, process_wide = 1 AS start_end, sum(end_ns - start_ns) AS total,
        count(*) AS n, ${statistics('end_ns - start_ns')}
        FROM trace_ranges r JOIN trace_names n ON n.code = r.name GROUP BY 1, 2 ORDER BY total DESC, range`),
    );
    const nsysRows = nsysStats(stats, 'nvtx_sum').map((row) => ({
      // The default domain has no name.
      range: row['Range']!.replace(/^:/, ''),
      start_end: row['Style'] === 'StartEnd',
      total: Number(row['Total Time (ns)']),
      n: Number(row['Instances']),
      ...nsysStatistics(row),
    }));
    expect(asPrinted(rows)).toEqual(sorted(nsysRows, 'range'));
  });
});

const operations: Record<string, string> = {
  '[CUDA memcpy Host-to-Device]': 'HtoD',
  '[CUDA memcpy Device-to-Host]': 'DtoH',
  '[CUDA memcpy Device-to-Device]': 'DtoD',
  '[CUDA memset]': 'memset',
};

function nsysStatistics(row: Record<string, string>) {
  return {
    avg: row['Avg (ns)'],
    med: row['Med (ns)'],
    min: row['Min (ns)'],
    max: row['Max (ns)'],
    sd: row['StdDev (ns)'],
  };
}

/** By total, then by name, like the queries here. */
function sorted<T extends { total: number }>(rows: T[], name: keyof T): T[] {
  return rows.sort((a, b) => b.total - a.total || (String(a[name]) < String(b[name]) ? -1 : 1));
}
