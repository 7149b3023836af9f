import { expect, test } from 'vitest';
import { importSession } from '../../session/archive-import.js';
import { openSession } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { explainSession } from '../explain/explain.js';

testHome();

/** Times per step that the programs printed without a profiler, ms (test/fixtures/hot-expert-2h200/ORIGIN.md). */
const hotMs = 22.42;
const evenMs = 14.75;

const findingsOf = async (name: string) => {
  const { id } = await importSession(`test/fixtures/hot-expert-2h200/${name}.tgz`);
  return (await explainSession(await openSession(id))).data.findings;
};

test('two H200: a hot expert is the first finding from nsys alone, with the gain of even experts', async () => {
  const [first] = await findingsOf('hot');
  expect(first).toMatchObject({ rule: 'expert_imbalance', stage: 'prefill' });
  // 80 % of the tokens instead of half of them.
  expect(first!.title).toContain('rank 1 receives 1.60× the mean');
  expect(Math.abs(first!.gain!.expected_ms / (hotMs - evenMs) - 1)).toBeLessThan(0.1);
});

test('two H200: even experts are not reported', async () => {
  expect((await findingsOf('even')).map(({ rule }) => rule)).not.toContain('expert_imbalance');
});
