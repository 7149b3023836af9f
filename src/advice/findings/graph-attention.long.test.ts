import { expect, test } from 'vitest';
import claims from '../../../test/fixtures/diagnosis-claims/claims.json' with { type: 'json' };
import { medianOf } from '../../../bench/diagnosis/median.js';
import { explainArchive } from './test-planted-faults.js';

test('a graph leaves as much as was measured: with a mask, attention repeats keys and values of 530 tokens', async () => {
  const { findings } = await explainArchive('test/fixtures/diagnosis-stock/sh_05_detokenized-fixed.tgz');
  const { gain } = findings.find(({ id }) => id === 'launch_bound:decode')!;
  const measured = claims.claims.find(
    ({ program, rule, stage, variant }) =>
      program === 'sh_05_detokenized' && rule === 'launch_bound' && stage === 'decode' && variant === 'graph',
  )!;
  const { median } = medianOf(measured.pairs.map(({ after }) => after));
  expect(median).toBeCloseTo(2.05, 2);
  // 2 × 3 layers × 32 × 529 tokens × 32 heads × 128 × 2 B, at a fifth of 4.39 TB/s: 0.95 ms.
  expect(Math.abs(gain!.after_ms - median)).toBeLessThan(0.1 * median);
  expect(gain!.assumption).toContain('takes as long as now, except attention (');
});
