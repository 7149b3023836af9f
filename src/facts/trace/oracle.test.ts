import { describe, expect, test } from 'vitest';
import { nsysStats } from '../../import/nsys/test-nsys-stats.js';
import { type Spread, traceDocumentSchema } from '../../model/documents/trace.js';
import { testHome } from '../../session/test-folder.js';
import { fixture, imported } from './test-import.js';
import { analyzeTrace } from './trace.js';

const home = testHome();
const folder = fixture('nsys-2025.3.1-h200');
/** `nsys stats` prints means, medians and standard deviations with one decimal. */
const expectNear = (value: number | null, printed: string | undefined) =>
  expect(Math.abs((value ?? 0) - Number(printed || 0))).toBeLessThanOrEqual(0.0501);

function expectSameSpread(spread: Spread, row: Record<string, string>, prefix = ''): void {
  expectNear(spread.mean_ns, row[`${prefix}Avg (ns)`]);
  expectNear(spread.median_ns, row[`${prefix}Med (ns)`]);
  expect(spread.min_ns).toBe(Number(row[`${prefix}Min (ns)`]));
  expect(spread.max_ns).toBe(Number(row[`${prefix}Max (ns)`]));
  expectNear(spread.sd_ns, row[`${prefix}StdDev (ns)`]);
}

describe.each(['tiny-nsys', 'tiny-graph', 'tiny-whole'])(
  '%s against `nsys stats` of the same report',
  (name) => {
    const analyzed = imported(home, 'nsys-sqlite', `${folder}/${name}.sqlite`).then((session) =>
      analyzeTrace(session),
    );
    const stats = (report: string) => nsysStats(`${folder}/nsys-stats/${name}`, report);

    test('matches its schema', async () => {
      const trace = await analyzed;
      expect(traceDocumentSchema.parse(trace)).toEqual(trace);
      expect(JSON.parse(JSON.stringify(trace))).toEqual(trace);
    });

    test('kernels equal cuda_gpu_kern_sum', async () => {
      const { kernels, kernels_total } = (await analyzed).data;
      const rows = stats('cuda_gpu_kern_sum');
      expect(kernels.length).toBe(rows.length);
      expect(kernels_total.count).toBe(rows.reduce((sum, row) => sum + Number(row['Instances']), 0));
      for (const row of rows) {
        const kernel = kernels.find((kernel) => kernel.name === row['Name'])!;
        expect([kernel.count, kernel.total_ns]).toEqual([
          Number(row['Instances']),
          Number(row['Total Time (ns)']),
        ]);
        expectSameSpread(kernel, row);
        expectNear(100 * kernel.share, row['Time (%)']);
        // Sampling is part of the steps.
        const exclusive = kernel.phases.filter(({ kind }) => kind !== 'sampling');
        expect(exclusive.reduce((sum, phase) => sum + phase.total_ns, 0)).toBe(kernel.total_ns);
      }
    });

    test('copies equal cuda_gpu_mem_time_sum and cuda_gpu_mem_size_sum', async () => {
      const names: Record<string, string> = {
        '[CUDA memcpy Host-to-Device]': 'HtoD',
        '[CUDA memcpy Device-to-Host]': 'DtoH',
        '[CUDA memcpy Device-to-Device]': 'DtoD',
        '[CUDA memset]': 'memset',
      };
      const copies = (await analyzed).data.copies.filter(({ phase }) => phase === null);
      const sizes = stats('cuda_gpu_mem_size_sum');
      for (const row of stats('cuda_gpu_mem_time_sum')) {
        // inferscope lists pageable and pinned copies separately.
        const kindCopies = copies.filter(({ kind }) => kind === names[row['Operation']!]);
        const sum = (valueOf: (copy: (typeof kindCopies)[number]) => number) =>
          kindCopies.reduce((all, copy) => all + valueOf(copy), 0);
        expect(sum(({ count }) => count)).toBe(Number(row['Count']));
        expect(sum(({ total_ns }) => total_ns)).toBe(Number(row['Total Time (ns)']));
        const megabytes = sizes.find((size) => size['Operation'] === row['Operation'])!['Total (MB)'];
        expect((sum(({ bytes }) => bytes) / 1e6).toFixed(3)).toBe(megabytes);
      }
    });

    test('API calls equal cuda_api_sum', async () => {
      const { api_calls } = (await analyzed).data;
      const rows = stats('cuda_api_sum');
      expect(api_calls.length).toBe(rows.length);
      for (const row of rows) {
        const apiCall = api_calls.find((call) => call.name === row['Name']!.replace(/_v\d+$/, ''))!;
        expect([apiCall.count, apiCall.total_ns]).toEqual([
          Number(row['Num Calls']),
          Number(row['Total Time (ns)']),
        ]);
        expectSameSpread(apiCall, row);
      }
    });

    test('launches equal cuda_kern_exec_sum for kernels launched by one thread through one call', async () => {
      const { launches } = (await analyzed).data;
      const rows = stats('cuda_kern_exec_sum');
      let compared = 0;
      for (const launch of launches.kernels) {
        const nsysRows = rows.filter((row) => row['Kernel Name'] === launch.kernel);
        // nsys has a row per thread and call, inferscope one per kernel.
        if (nsysRows.length !== 1) continue;
        compared++;
        const [row] = nsysRows;
        expect([launch.count, launch.queue?.count ?? 0]).toEqual([
          Number(row!['Count']),
          Number(row!['QCount']),
        ]);
        expect(launch.api_name).toBe(row!['API Name']!.replace(/_v\d+$/, ''));
        expectSameSpread(launch.total, row!, 'T');
        expectSameSpread(launch.api, row!, 'A');
        expectSameSpread(launch.kernel_spread, row!, 'K');
        if (launch.queue) expectSameSpread(launch.queue, row!, 'Q');
      }
      expect(compared).toBeGreaterThanOrEqual(5 - Number(name === 'tiny-graph'));
    });

    test('phases equal ranges of nvtx_sum and activities of nvtx_gpu_proj_sum', async () => {
      const { phases } = (await analyzed).data;
      const ranges = stats('nvtx_gpu_proj_sum');
      let compared = 0;
      for (const phase of phases.filter(({ kind }) => ['prefill', 'decode', 'sampling'].includes(kind))) {
        for (const instance of phase.rows) {
          const range = `:inferscope:${phase.kind}:${instance.iteration}:${instance.step_index ?? 0}`;
          const row = ranges.find((candidate) => candidate['Range'] === range);
          if (!row) continue;
          compared++;
          const nsysOps = Number(row['Total GPU Ops']);
          // nsys counts the launch of a CUDA graph, here of 10 nodes, as one activity.
          const ops = name === 'tiny-graph' ? nsysOps + 9 : nsysOps;
          if (phase.kind === 'sampling') expect(instance.kernels).toBe(1);
          else expect(instance.kernels + instance.copies).toBe(ops);
        }
        for (const row of phase.rows) {
          expect(row.busy_ns + row.idle_ns).toBeCloseTo(row.wall_ns, 3);
          expect(row.compute_ns).toBeGreaterThanOrEqual(0);
        }
      }
      expect(compared).toBeGreaterThan(4);
    });
  },
);

test('idle and busy time of the device sum to the capture', async () => {
  const session = await imported(home, 'nsys-sqlite', `${folder}/tiny-nsys.sqlite`);
  const database = await session.connect();
  const [row] = await database.query<{ span: number; busy: number; idle: number }>(
    `SELECT (SELECT max(t) - min(s) FROM (SELECT min(start_ns) AS s, max(start_ns + dur_ns) AS t FROM kernels
       UNION ALL SELECT min(start_ns), max(start_ns + dur_ns) FROM copies)) AS span,
     (SELECT sum(exclusive_ns) FROM kernels) + (SELECT sum(exclusive_ns) FROM copies) AS busy, (SELECT sum(dur_ns) FROM gaps WHERE device = 0) AS idle`,
  );
  await database.close();
  expect(row!.busy + row!.idle).toBe(row!.span);
  const { devices, source } = (await analyzeTrace(session)).data;
  expect(devices).toHaveLength(1);
  expect([devices[0]!.busy_ns, devices[0]!.span_ns]).toEqual([row!.busy, row!.span]);
  expect(source.end_ns - source.start_ns).toBe(row!.span);
  expect(devices[0]!.name).toBe('NVIDIA H200');
  expect(devices[0]!.sm_count.value).toBe(132);
});
