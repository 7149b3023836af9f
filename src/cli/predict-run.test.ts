import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { expect, test } from 'vitest';
import { sessionOf, tinyConfig, tinyWorkload } from '../facts/test-session.js';
import { findPreset } from '../llm/presets.js';
import { exampleGpuRoofline } from '../model/documents/test-gpu-roofline.js';
import { terminalView } from '../render/terminal/view.js';
import { predictView } from '../views/predict.js';
import { explainSession } from '../advice/explain/explain.js';
import { importSession } from '../session/archive-import.js';
import { homeFolders } from '../session/home.js';
import { openSession } from '../session/open.js';
import { testFolder } from '../session/test-folder.js';
import { chooseCases } from './kernels-cases.js';
import { predictDocumentOf } from './predict-run.js';

test('the peak has the dtype of the GEMMs: NVFP4 on a B300', async () => {
  const document = await predictDocumentOf({
    model: 'gpt-oss-20b',
    gpu: 'B300',
    dtype: 'nvfp4',
    kernels: [],
  });
  // An eighth of the 108 dense PFLOP/s of a board with eight GPUs.
  expect(document.data.device.peak_flops_per_s.value).toBe(108e15 / 8);
  expect(document.data.device.peak_dtype).toBe('nvfp4');
  expect(terminalView(predictView(document), { width: 80 })).toContain('nvfp4 13.5 PFLOP/s');
});

test("warns about config keys that the model's family does not read", async () => {
  const folder = testFolder();
  const config = { ...findPreset('llama-3.2-1b')!.config, num_local_experts: 8 };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  const protocol = { runs: 1, maxSeconds: 1, check: false, graph: false, seed: 0 };
  const typed = { ...protocol, fromModel: folder, tag: [], output: folder };
  const { issues: kernelIssues } = await chooseCases([], typed, { gpu: true, dtypes: ['bfloat16'] });
  const { issues: predictionIssues } = await predictDocumentOf({ model: folder, gpu: 'H200', kernels: [] });
  for (const issues of [kernelIssues, predictionIssues])
    expect(issues).toContainEqual(
      expect.objectContaining({
        code: 'config_keys_unread',
        text: expect.stringContaining('num_local_experts'),
      }),
    );
});

test('uses the rooflines of a saved session: a named one, or the newest with that GPU', async () => {
  process.env['INFERSCOPE_HOME'] = testFolder();
  const { id } = await sessionOf(
    homeFolders(),
    {},
    { kind: 'roofline', workload: null, roofline: null, artifacts: { 'roofline-gpu': exampleGpuRoofline() } },
  );
  const typed = { model: 'llama-3.2-1b', kernels: [] };
  for (const more of [{ gpu: 'H200' }, { roofline: id }]) {
    const { data } = await predictDocumentOf({ ...typed, ...more });
    // 800 TFLOP/s and 4 TB/s, as in exampleGpu; the data sheet has 989 and 4.8.
    expect(data.device).toMatchObject({
      name: 'NVIDIA H200',
      roofs: 'measured',
      peak_flops_per_s: { value: 800e12 },
      bandwidth_bytes_per_s: { value: 4e12 },
    });
  }
  const otherGpu = await predictDocumentOf({ ...typed, gpu: 'H100' });
  expect(otherGpu.data.device.roofs).toBe('data-sheet');
});

test('the bandwidth of a CPU is that of the decode step with its KV cache, and has its level', async () => {
  process.env['INFERSCOPE_HOME'] = testFolder();
  const { id } = await sessionOf(homeFolders(), {});
  const predicted = (inputLen: number) =>
    predictDocumentOf({ model: 'llama-24m', dtype: 'int8', kernels: [], roofline: id, inputLen: [inputLen] });
  // Weights of 24 MiB are between the measured sets of 16 and 64 MiB: 20 GB/s in the L3 and 10 GB/s in DRAM.
  const [short, long] = [await predicted(16), await predicted(1900)];
  const bandwidths = [short, long].map(({ data }) => data.device.bandwidth_bytes_per_s.value ?? Number.NaN);
  expect(bandwidths[1]).toBeLessThan(bandwidths[0]!);
  expect(long.data.device.bandwidth_level).toBe('DRAM');
  expect(terminalView(predictView(long), { width: 120 })).toContain('bandwidth (DRAM) ');
});

test('times of a session are not compared with predictions of other sizes, and a warning has its sizes', async () => {
  process.env['INFERSCOPE_HOME'] = testFolder();
  const { id } = await importSession('test/fixtures/diagnosis/launch_bound_decode-fault.tgz', homeFolders());
  const own = await predictDocumentOf({ kernels: [], session: id });
  const [batch, prompt] = [own.data.stages[0]!.batch_size, own.data.stages[0]!.input_len];
  expect(own.data.stages.some(({ measured }) => measured.length > 0)).toBe(true);
  const other = await predictDocumentOf({ kernels: [], session: id, batchSize: [batch * 2] });
  expect(other.data.stages.flatMap(({ measured }) => measured)).toEqual([]);
  expect(other.issues.find(({ code }) => code === 'other_sizes')?.text).toContain(
    `batch ${batch}, prompt ${prompt}, `,
  );
});

test('a session of kernels is its own kernel table: no comparison, a time for every operation', async () => {
  process.env['INFERSCOPE_HOME'] = testFolder();
  const config = join(testFolder(), 'config.json');
  writeFileSync(config, JSON.stringify(tinyConfig));
  const protocol = { runs: 1, maxSeconds: 1, check: false, graph: false, seed: 0 };
  const typed = { ...protocol, fromModel: config, contextLen: [8], tag: [], output: testFolder() };
  const { cases } = await chooseCases([], typed, { gpu: false, dtypes: ['float32'] });
  const microbenchmarks = cases.map((kernelCase) => ({
    execution_id: 'kernels',
    name: kernelCase.kernel,
    case_id: kernelCase.case,
    dtype: kernelCase.dtype,
    params: JSON.stringify(kernelCase.params),
    outcome: 'measured',
    flops: kernelCase.flops,
    bytes: kernelCase.bytes,
    runs: 3,
    median_ns: 5000,
    threads: 1,
  }));
  const session = await sessionOf(
    homeFolders(),
    { microbenchmarks },
    { kind: 'kernels', workload: tinyWorkload() },
  );
  for (const selector of [session.id, '@last']) {
    const { data } = await predictDocumentOf({ session: selector, inputLen: [8], kernels: [] });
    expect(data.table).toMatchObject({ sessions: [session.id], cases: cases.length });
    const prefill = data.stages.find(({ phase }) => phase === 'prefill')!;
    expect(prefill).toMatchObject({ measured: [], input_len: 8 });
    const gemms = prefill.ops.filter(({ kernel }) => kernel === 'gemm');
    expect(gemms.length).toBeGreaterThan(3);
    for (const gemm of gemms)
      expect([gemm.op, gemm.method, gemm.predicted_us]).toEqual([gemm.op, 'measured', 5]);
  }
});

test('a session in which float32 ran as TF32 has the roofline that explain shows', async () => {
  process.env['INFERSCOPE_HOME'] = testFolder();
  const { id } = await importSession('test/fixtures/diagnosis/tf32_prefill-fault.tgz');
  const { data } = await predictDocumentOf({ session: id, kernels: [] });
  expect(data.device.peak_dtype).toBe('float32 as tfloat32');
  expect(data.stages.some(({ measured }) => measured.length > 0)).toBe(true);
  const half = await predictDocumentOf({ session: id, dtype: 'bfloat16', kernels: [] });
  expect(half.data.stages.every(({ measured }) => measured.length === 0)).toBe(true);
  expect(half.issues.map(({ text }) => text)).toContain(
    'The session ran in float32: its times are not compared with a prediction in bfloat16.',
  );
  const { stages } = (await explainSession(await openSession(id))).data;
  expect(data.stages[0]!.roofline_ms.value).toBeCloseTo(stages[0]!.roofline_ms.value!, 2);
});
