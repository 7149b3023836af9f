import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Timing } from '../../../bench/diagnosis/grade.js';
import { medianOf } from '../../../bench/diagnosis/median.js';
import { whatIfDocumentSchema } from '../../model/documents/explain.js';
import { importSession } from '../../session/archive-import.js';
import { openSession } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { whatIf } from './what-if.js';

const home = testHome();
const { timings } = JSON.parse(readFileSync('test/fixtures/diagnosis/timings.json', 'utf8')) as {
  timings: Timing[];
};

/**
 * Fixes of planted faults that are `--what-if` changes (programs, captures and interleaved timings of an H200,
 * bench/diagnosis). The other fixes change the program.
 */
const repairs: [fault: string, change: string][] = [
  ['launch_bound_decode', 'cudagraph'],
  ['small_batch_decode', 'batch-size=256'],
  ['float32_prefill', 'dtype=bfloat16'],
  ['tf32_prefill', 'dtype=bfloat16'],
  ['eager_attention', 'fused-attention'],
  ['unfused_elementwise', 'fused-elementwise'],
  ['pageable_copies', 'pinned-copies'],
  ['sync_every_layer', 'no-sync'],
];

test.each(repairs)('%s: %s predicts the time of the fixed program', async (fault, change) => {
  const timing = timings.find((candidate) => candidate.fault === fault)!;
  const { id } = await importSession(`test/fixtures/diagnosis/${fault}-fault.tgz`, home);
  const result = await whatIf(await openSession(id, home), [change]);
  expect(whatIfDocumentSchema.parse(result)).toEqual(result);
  const stage = result.data.stages.find(({ kind }) => kind === timing.kind)!;
  const wall = (side: 'fault' | 'fixed') =>
    medianOf(timing.pairs.map((pair) => pair[side].wall_ms / timing.per[side])).median;
  const after = stage.after_ms;
  if (after.value === null) throw new Error(after.reason.text);
  const scale = (stage.per_token_after_ms ?? after.value) / after.value;
  const before = stage.per_token_before_ms ?? stage.before_ms.value!;
  const achieved = wall('fault') - wall('fixed');
  expect(Math.abs(before - scale * after.value - achieved) / achieved).toBeLessThan(0.25);
  const [low, high] = after.ci95!;
  // Both times have an error of some percent, which the comparison allows.
  expect(wall('fixed')).toBeGreaterThan(0.95 * scale * low);
  expect(wall('fixed')).toBeLessThan(1.05 * scale * high);
});
