import { expect, test } from 'vitest';
import { testHome } from '../../session/test-folder.js';
import { fixture, imported } from '../trace/test-import.js';
import { readGemmCalls, gemmKey } from './gemm-calls.js';
import { analyzeGemms } from './gemms.js';

test('calls of each GEMM sum to its time, and kernels name their GEMMs', async () => {
  const session = await imported(testHome(), 'kineto', fixture('kineto-torch2.11-h200/kineto-tiny.json.gz'));
  const { data } = await analyzeGemms(session);
  const database = await session.connect();
  const { gemms, gemmsOfKernel } = await readGemmCalls(database);
  await database.close();
  expect(gemms.length).toBeGreaterThan(5);
  expect(gemms.map(({ name, count, total_ns }) => [name, count, total_ns]).toSorted()).toEqual(
    data.gemms.map((gemm) => [gemmKey(gemm), gemm.calls, gemm.total_time_ns.value]).toSorted(),
  );
  for (const { bins, count } of gemms) expect(bins.reduce((sum, bin) => sum + bin.count, 0)).toBe(count);
  const named = new Set([...gemmsOfKernel.values()].flat());
  expect([...named].toSorted()).toEqual(gemms.map(({ name }) => name).toSorted());
});
