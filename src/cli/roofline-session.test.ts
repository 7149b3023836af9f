import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readStoredGpuRoofline } from '../facts/roofs.js';
import type { KernelCapture } from '../capture/kernels/capture.js';
import { rooflineOrder } from '../capture/roofline/gpu-plan.js';
import { gemmCase } from '../capture/roofline/gemm-search.js';
import { measuredLine, unmeasuredLine } from '../capture/roofline/test-lines.js';
import { exampleGpuRoofline } from '../model/documents/test-gpu-roofline.js';
import { homeFolders } from '../session/home.js';
import { openSession } from '../session/open.js';
import { testFolder } from '../session/test-folder.js';
import { analyzeSession, documentsOf } from '../facts/session-document.js';
import { pageOfView } from '../render/html/view.js';
import { viewOf } from '../views/registry.js';
import { recordRoofline } from './roofline-session.js';

test('every case is a row, sensor samples are stored with it, and analyses read the roofline', async () => {
  process.env['INFERSCOPE_HOME'] = testFolder();
  const { id } = await recordRoofline(
    { name: 'one', tag: ['h200'] },
    async ({ originNs: startNs, scratch }) => {
      const fast = gemmCase({ dtype: 'bfloat16', m: 8192, n: 8192, k: 8192 });
      const unsupported = gemmCase({ dtype: 'float8', m: 8192, n: 8192, k: 8192 });
      const recordPath = join(scratch, 'record.jsonl');
      const lines = [
        measuredLine(fast, [1.4e6, 1.4e6], { t_ns: startNs + 1e9, end_ns: startNs + 2e9 }),
        unmeasuredLine(unsupported, 'unsupported', 'no float8 here'),
      ];
      writeFileSync(recordPath, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
      const capture: KernelCapture = {
        order: rooflineOrder('cuda0-first', 'cuda:0', [fast, unsupported]),
        recordPath,
        launches: [{ launch: 0, cases: [fast.case, unsupported.case], failure: null, log: null }],
        device: null,
        start_ns: startNs + 0.5e9,
        end_ns: startNs + 3e9,
        sampled: ['cuda0-first-gpus'],
        issues: [],
        stopped: false,
      };
      const keys = { execution_id: 'cuda0-first', capture_id: 'cuda0-first-gpus', host: 'localhost' };
      const power = { ...keys, t_ns: startNs + 1.5e9, scope: 'gpu0', metric: 'power_instant_w', value: 690 };
      const gpu = {
        roofline: exampleGpuRoofline(),
        cached: false,
        ageS: 0,
        recording: { captures: [capture], telemetry: [power], memory: [] },
      };
      return { gpu, stopped: false };
    },
  );

  const opened = await openSession(id, homeFolders());
  expect(opened.manifest).toMatchObject({
    kind: 'roofline',
    status: 'complete',
    hardware: { gpu_name: 'NVIDIA H200', gpu_pci_id: '10de:2335', gpu_count: 2 },
    executions: [{ execution_id: 'cuda0-first', purpose: 'microbenchmark', exit_code: 0 }],
  });
  expect(await readStoredGpuRoofline(opened)).toEqual(exampleGpuRoofline());
  const analyzed = await analyzeSession(opened);
  expect(documentsOf(analyzed)).toMatchObject([
    { schema: 'inferscope/roofline/1.2', data: { roofline: null, gpu: exampleGpuRoofline() } },
  ]);
  if (analyzed.kind !== 'roofline') throw new Error(analyzed.kind);
  const page = pageOfView(await viewOf(analyzed), { clientScript: '' });
  for (const text of ['NVIDIA H200', '800&nbsp;TFLOP/s', 'sw power cap', 'All-reduce over 2 GPUs', opened.id])
    expect(page.replaceAll('\u00a0', '&nbsp;')).toContain(text);
  const database = await opened.connect();
  const rows = await database.query(
    `SELECT name, dtype, outcome, round(value / 1e12, 1) AS tflops, start_ns FROM microbenchmarks ORDER BY dtype`,
  );
  // 2·8192³ FLOP in 1.4 ms
  expect(rows).toEqual([
    { name: 'gemm', dtype: 'bfloat16', outcome: 'measured', tflops: 785.4, start_ns: 1e9 },
    expect.objectContaining({ dtype: 'float8', outcome: 'unsupported', tflops: null }),
  ]);
  const [sample] = await database.query(`SELECT value, t_ns FROM telemetry`);
  await database.close();
  expect(sample).toEqual({ value: 690, t_ns: 1.5e9 });
});
