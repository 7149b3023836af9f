import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { SessionDatabase } from '../../session/query.js';
import { kinetoImporter } from '../kineto/importer.js';
import { nsysParquetdirImporter, nsysSqliteImporter } from '../nsys/importers.js';
import { nsysStats } from '../nsys/test-nsys-stats.js';
import { importWith } from './test-import.js';

const folder = 'test/fixtures/nsys-2025.3.1-h200';

/** Each stage with itself and every stage around it: nsys counts an activity in all of them. */
const enclosingSql = `
  WITH RECURSIVE enclosing AS (
    SELECT stage_id, stage_id AS outer_id FROM stages
    UNION ALL SELECT enclosing.stage_id, s.parent_id FROM enclosing JOIN stages s ON s.stage_id = enclosing.outer_id
    WHERE s.parent_id IS NOT NULL)`;

interface Projection {
  range: string;
  ops: number;
  total: number;
  min: number;
  max: number;
}

/** nvtx_gpu_proj_sum: first to last activity of each range, summed over ranges of one name. A graph is one operation. */
function projections(database: SessionDatabase): Promise<Projection[]> {
  return database.query<Projection>(
    `${enclosingSql}, activity AS (
       SELECT stage_id, attributed_by, correlation FROM kernels
       UNION ALL SELECT stage_id, attributed_by, correlation FROM copies),
     operations AS (
       SELECT outer_id, count(DISTINCT correlation) AS ops FROM activity JOIN enclosing USING (stage_id) WHERE attributed_by = 'api' GROUP BY ALL)
     SELECT raw_name AS range, sum(ops) AS ops, sum(device_end_ns - device_start_ns) AS total,
       min(device_end_ns - device_start_ns) AS min, max(device_end_ns - device_start_ns) AS max
     FROM stages JOIN operations ON outer_id = stage_id GROUP BY raw_name ORDER BY raw_name`,
  );
}

interface RangeKernel {
  range: string;
  kernel: string;
  count: number;
  total: number;
}

/** nvtx_kern_sum: time of each kernel in each range. */
function rangeKernels(database: SessionDatabase): Promise<RangeKernel[]> {
  return database.query<RangeKernel>(
    `${enclosingSql}
     SELECT s.raw_name AS range, k.name AS kernel, count(*) AS count, sum(k.dur_ns) AS total
     FROM kernels k JOIN enclosing USING (stage_id) JOIN stages s ON s.stage_id = enclosing.outer_id
     WHERE attributed_by = 'api' GROUP BY ALL ORDER BY ALL`,
  );
}

const captures = [
  ['tiny-nsys.sqlite', 'tiny-nsys'],
  ['tiny-nsys.parquetdir', 'tiny-nsys'],
  ['tiny-whole.sqlite', 'tiny-whole'],
  ['tiny-graph.sqlite', 'tiny-graph'],
  ['tiny-graph-opaque.sqlite', 'tiny-graph-opaque'],
] as const;

describe.each(captures)('%s', (file, stats) => {
  const importer = file.endsWith('.sqlite') ? nsysSqliteImporter : nsysParquetdirImporter;
  const imported = importWith((target, context) => importer.load(`${folder}/${file}`, target, context));
  const opaque = stats === 'tiny-graph-opaque';

  test.skipIf(opaque)('ranges projected on the device equal nvtx_gpu_proj_sum', async () => {
    const { database } = await imported;
    const oracle = nsysStats(`${folder}/nsys-stats/${stats}`, 'nvtx_gpu_proj_sum').map((row) => ({
      range: row['Range']!.slice(1),
      ops: Number(row['Total GPU Ops']),
      total: Number(row['Total Proj Time (ns)']),
      min: Number(row['Proj Min (ns)']),
      max: Number(row['Proj Max (ns)']),
    }));
    expect(oracle.length).toBeGreaterThan(0);
    expect(await projections(database)).toEqual(oracle.sort((a, b) => (a.range < b.range ? -1 : 1)));
  });

  test.skipIf(opaque)('kernels in ranges equal nvtx_kern_sum', async () => {
    const { database } = await imported;
    const oracle = nsysStats(`${folder}/nsys-stats/${stats}`, 'nvtx_kern_sum')
      .filter((row) => row['NVTX Range'] !== '')
      .map(
        (row) =>
          `${row['NVTX Range']!.slice(1)} ${row['Kern Inst']} ${row['Total Time (ns)']} ${row['Kernel Name']}`,
      );
    const kernels = (await rangeKernels(database)).map(
      ({ range, kernel, count, total }) => `${range} ${count} ${total} ${kernel}`,
    );
    expect(kernels.sort()).toEqual(oracle.sort());
  });

  test('exclusive and idle time of the device sum to its span, and the parts of each gap to the gap', async () => {
    const { database } = await imported;
    const [sums] = await database.query<{ accounted: number; span: number }>(
      `SELECT sum(exclusive_ns) + (SELECT sum(dur_ns) FROM gaps) AS accounted, max(end_ns) - min(start_ns) AS span
       FROM (SELECT exclusive_ns, start_ns, start_ns + dur_ns AS end_ns FROM kernels
             UNION ALL SELECT exclusive_ns, start_ns, start_ns + dur_ns FROM copies)`,
    );
    expect(sums!.accounted).toBe(sums!.span);
    const wrong = await database.query(
      `SELECT * FROM gaps WHERE synchronization_ns + host_ns + launch_overhead_ns + launch_latency_ns
         + device_dependency_ns + unattributed_ns <> dur_ns
       OR least(synchronization_ns, host_ns, launch_overhead_ns, launch_latency_ns, device_dependency_ns) < 0`,
    );
    expect(wrong).toEqual([]);
  });

  test('over 95 % of the GPU time is classified', async () => {
    const { database } = await imported;
    const [row] = await database.query<{ share: number }>(
      `SELECT sum(dur_ns) FILTER (class <> 'other') / sum(dur_ns) AS share FROM kernels`,
    );
    expect(row!.share).toBeGreaterThan(0.95);
  });
});

test('work of threads without ranges is attributed by rules that nsys lacks, and counted', async () => {
  const { database, issues } = await importWith((target, context) =>
    nsysSqliteImporter.load(`${folder}/tiny-nsys.sqlite`, target, context),
  );
  // The program (test/fixtures/tiny.py, extras): one matmul in a start/end range, one while `worker thread` is open.
  expect(
    await database.query(
      `SELECT raw_name AS range, attributed_by AS how, count(*) AS n FROM kernels JOIN stages USING (stage_id)
       WHERE attributed_by <> 'api' GROUP BY ALL ORDER BY ALL`,
    ),
  ).toEqual([
    { range: 'process wide', how: 'process_range', n: 1 },
    { range: 'worker thread', how: 'thread', n: 1 },
  ]);
  expect(issues.filter(({ code }) => code.startsWith('attributed_by')).map(({ count }) => count)).toEqual([
    1, 1,
  ]);
  // Eager decode of a tiny model: the device waits for the host most of the time.
  const causes = await database.query<{ cause: string }>(
    'SELECT cause FROM gaps GROUP BY cause ORDER BY sum(dur_ns) DESC LIMIT 1',
  );
  expect(causes).toEqual([{ cause: 'host' }]);
  await database.close();
});

interface KeyAverage {
  key: string;
  count: number;
  self_cpu_time_us: number;
  cpu_time_us: number;
  device_type?: string;
}

interface TraceEvent {
  cat?: string;
  name: string;
  ts: number;
  dur: number;
}

/** Time of the profiler inside operators, ns: torch subtracts it, and the trace does not record its thread. */
function profilerOverhead(path: string): Map<string, number> {
  const { traceEvents } = JSON.parse(gunzipSync(readFileSync(path)).toString()) as {
    traceEvents: TraceEvent[];
  };
  const overheads = new Map<string, number>();
  for (const { cat, ts, dur } of traceEvents) {
    if (cat !== 'overhead') continue;
    const innermost = traceEvents
      .filter((traceEvent) => /^(?:cpu_op|cuda_runtime|cuda_driver)$/.test(traceEvent.cat ?? ''))
      .filter((traceEvent) => traceEvent.ts <= ts && traceEvent.ts + traceEvent.dur >= ts + dur)
      .toSorted((a, b) => b.ts - a.ts)[0];
    if (innermost?.cat === 'cpu_op')
      overheads.set(innermost.name, (overheads.get(innermost.name) ?? 0) + Math.round(1000 * dur));
  }
  return overheads;
}

test.each([
  'kineto-torch2.11-h200/kineto-tiny',
  'kineto-torch2.11-h200/kineto-tiny-stack',
  'kineto-torch2.11-cpu/layer',
])('operators of %s have the self CPU time of key_averages()', async (name) => {
  const { database } = await importWith((target, context) =>
    kinetoImporter.load(`test/fixtures/${name}.json.gz`, target, context),
  );
  const operators = await database.query<{ name: string; n: number; total: number; self: number }>(
    `SELECT name, count(*) AS n, sum(dur_ns)::DOUBLE AS total, sum(self_dur_ns)::DOUBLE AS self FROM ops WHERE op_type = 'cpu_op' GROUP BY name ORDER BY name`,
  );
  await database.close();
  const torch = JSON.parse(readFileSync(`test/fixtures/${name}.key_averages.json`, 'utf8')) as KeyAverage[];
  const overhead = profilerOverhead(`test/fixtures/${name}.json.gz`);
  const expected = operators.map((operator) => {
    const row = torch.find(
      ({ key, device_type }) =>
        key === operator.name && (device_type ?? 'DeviceType.CPU') === 'DeviceType.CPU',
    )!;
    const ns = (us: number) => Math.round(1000 * us);
    const self = ns(row.self_cpu_time_us) + (overhead.get(operator.name) ?? 0);
    return { name: operator.name, n: row.count, total: ns(row.cpu_time_us), self };
  });
  expect(operators.length).toBeGreaterThan(15);
  expect(operators).toEqual(expected);
});
