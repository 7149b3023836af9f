import { expect, test } from 'vitest';
import { importSession } from '../../session/archive-import.js';
import { openSession } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { explainSession } from '../explain/explain.js';

testHome();

/** Times per token that the programs printed without a profiler, ms (test/fixtures/experts-h200/ORIGIN.md). */
const copiedMs = 13.01;
const groupedMs = 10.87;

test('H200: copies of expert matrices in generate() are the first finding, with the gain that the host allows', async () => {
  const { id } = await importSession('test/fixtures/experts-h200/batched.tgz');
  const { findings } = (await explainSession(await openSession(id))).data;
  const [first] = findings;
  expect(first).toMatchObject({ rule: 'copied_expert_weights', stage: 'decode', severity: 'high' });
  // 32 tokens, two experts each.
  expect(first!.cause).toContain('each of its 64 pairs of token and expert');
  expect(Math.abs(first!.gain!.expected_ms / (copiedMs - groupedMs) - 1)).toBeLessThan(0.25);
  // Prefills use grouped GEMMs already.
  expect(findings.filter(({ rule }) => rule === 'copied_expert_weights')).toHaveLength(1);
});
