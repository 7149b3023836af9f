import { expect, test } from 'vitest';
import { importSession } from '../../session/archive-import.js';
import { openSession } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { readMeasuredStages } from '../../facts/predict/measured.js';
import { explainSession } from '../explain/explain.js';

testHome();

/** Times per token that the programs printed without a profiler, ms (test/fixtures/experts-h200/ORIGIN.md). */
const copiedMs = 13.01;
const groupedMs = 10.87;

/** The repaired twin, as claims.py measured it with grouped GEMMs in its decode steps, ms. */
const twin = { copiedMs: 18.77, groupedMs: 4.79 };

test('H200: copies that take several kernels each are found, with the gain that was measured', async () => {
  const archive = 'test/fixtures/diagnosis-stock/sg_14_experts-fixed.tgz';
  const session = await openSession((await importSession(archive)).id);
  const [first] = (await explainSession(session)).data.findings;
  expect(first).toMatchObject({ rule: 'copied_expert_weights', stage: 'decode', severity: 'high' });
  // Two matrices in each of three layers, of 128 pairs each.
  expect(first!.title).toContain('18 kernels');
  expect(Math.abs(first!.gain!.expected_ms / (twin.copiedMs - twin.groupedMs) - 1)).toBeLessThan(0.25);
});

test('H200: copies of expert matrices in generate() are the first finding, with the gain that the host allows', async () => {
  const { id } = await importSession('test/fixtures/experts-h200/batched.tgz');
  const session = await openSession(id);
  const { findings } = (await explainSession(session)).data;
  const [first] = findings;
  expect(first).toMatchObject({ rule: 'copied_expert_weights', stage: 'decode', severity: 'high' });
  // 32 tokens, two experts each.
  expect(first!.cause).toContain('each of its 64 pairs of token and expert');
  // The host limits both, and was slower in the other process: the gain was at the low end.
  const { low_ms: low, high_ms: high, host_ms: host } = first!.gain!;
  expect(Math.abs(low / (copiedMs - groupedMs) - 1)).toBeLessThan(0.1);
  expect(high).toBeGreaterThan(first!.gain!.expected_ms);
  expect(host).toBeCloseTo(7.0, 1);
  // Prefills use grouped GEMMs already.
  expect(findings.filter(({ rule }) => rule === 'copied_expert_weights')).toHaveLength(1);
  // A prediction is compared with the sizes that the hooks recorded.
  const typed = { batchSize: null, inputLen: null, outputLen: null };
  expect(await readMeasuredStages(session, typed)).toMatchObject([
    { phase: 'prefill', batchSize: 32, inputLen: 128 },
    { phase: 'decode', batchSize: 32, inputLen: 128 },
  ]);
});
