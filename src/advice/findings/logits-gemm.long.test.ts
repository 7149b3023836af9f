import { expect, test } from 'vitest';
import { importSession } from '../../session/archive-import.js';
import { openSession } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { explainSession } from '../explain/explain.js';

testHome();

/** Mean prefill of the twin with and without contiguous hidden states, as claims.py measured it, ms. */
const measured = { before: 12.594, after: 10.962 };

test('H200: prompts of two sizes are judged each by its own times', async () => {
  const archive = 'test/fixtures/diagnosis-stock-validation/sk_12_padded-fixed.tgz';
  const { findings } = (await explainSession(await openSession((await importSession(archive)).id))).data;
  // generate() computes the logits of the last tokens only: without the others nothing became faster.
  expect(findings.map(({ rule }) => rule)).not.toContain('prompt_logits');
  const perSequence = findings.find(({ rule }) => rule === 'gemm_per_sequence')!;
  // Every second prefill has 15 sequences, the others one.
  expect(perSequence.cause).toContain('15 sequences');
  expect(perSequence.gain!.expected_ms / (measured.before - measured.after)).toBeCloseTo(1, 1);
});
