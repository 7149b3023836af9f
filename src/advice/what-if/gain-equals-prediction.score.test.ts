import { expect, test } from 'vitest';
import { importSession } from '../../session/archive-import.js';
import { openSession } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { explainSession } from '../explain/explain.js';
import { whatIf } from './what-if.js';

const home = testHome();

/** Rules with a `--what-if` change, and an H200 session in which they fire. */
test.each([
  ['launch_bound_decode', 'launch_bound', 'cudagraph'],
  ['sync_every_layer', 'synchronization_every_step', 'no-sync'],
  ['pageable_copies', 'host_copies', 'pinned-copies'],
  ['eager_attention', 'eager_attention', 'fused-attention'],
  ['unfused_elementwise', 'elementwise_norm_overhead', 'fused-elementwise'],
  ['float32_prefill', 'half_precision', 'dtype=bfloat16'],
  ['small_batch_decode', 'small_batch_memory_bound', 'batch-size=225'],
])('%s: the gain of %s equals the prediction of --what-if %s', async (fault, rule, word) => {
  const { id } = await importSession(`test/fixtures/diagnosis/${fault}-fault.tgz`, home);
  const session = await openSession(id, home);
  const { findings } = (await explainSession(session)).data;
  const matching = findings.filter((finding) => finding.rule === rule);
  expect(matching.length).toBeGreaterThan(0);
  const { stages } = (await whatIf(session, [word])).data;
  for (const { stage, gain } of matching) {
    expect(gain?.what_if).toBe(word);
    const { before_ms, after_ms, per_token_before_ms, per_token_after_ms } = stages.find(
      ({ kind }) => kind === stage,
    )!;
    if (after_ms.value === null) throw new Error(after_ms.reason.text);
    const [before, after] =
      gain!.per === 'token'
        ? [per_token_before_ms!, per_token_after_ms!]
        : [before_ms.value!, after_ms.value];
    const tokens = after_ms.value / after;
    const [low, high] = after_ms.ci95!;
    expect(gain!.after_ms).toBeCloseTo(after, 9);
    expect(gain!.expected_ms).toBeCloseTo(before - after, 9);
    expect(gain!.low_ms).toBeCloseTo(Math.max(0, before - high / tokens), 9);
    expect(gain!.high_ms).toBeCloseTo(before - low / tokens, 9);
  }
});
