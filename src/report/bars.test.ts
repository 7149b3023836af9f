import { expect, it } from 'vitest';
import { figure } from '../model/figure.js';
import { shownBars } from './bars.js';
import { testProfile } from './test-profile.js';

const sum = (bars: { ms: number }[]): number => bars.reduce((total, { ms }) => total + ms, 0);

it('bars under 1 % become one, in place and in sum; roofline and what is not explained stay', () => {
  const stage = testProfile().data.stages[1]!;
  stage.duration_ms = figure(10, 'ms', 'test');
  const bar = (id: string, ms: number) => ({ id, ms, confidence: 'medium' as const });
  stage.bars = [
    bar('roofline', 0.05),
    bar('inefficiency.gemm', 9.7),
    bar('inefficiency.norm', 0.09),
    bar('host.runtime_call', 0.1),
    bar('host.sampling', 0.06),
    bar('unattributed', 0),
  ];
  const shown = shownBars(stage);
  expect(shown.map(({ label }) => label)).toEqual([
    'roofline',
    'GEMM over roof',
    'call into the runtime',
    '2 smaller parts',
    'not explained',
  ]);
  expect(shown[3]).toMatchObject({ ms: 0.15, meaning: 'norm over roof, sampling' });
  expect(sum(shown)).toBeCloseTo(10, 9);
});

it('one small bar alone keeps its name, and nothing is lost of a whole profile', () => {
  const stage = testProfile().data.stages[0]!;
  expect(sum(shownBars(stage))).toBeCloseTo(stage.duration_ms.value!, 9);
  stage.bars = [
    { id: 'roofline', ms: 100, confidence: 'low' },
    { id: 'host.loop', ms: 1e-6, confidence: 'high' },
  ];
  expect(shownBars(stage).map(({ label }) => label)).toEqual(['roofline', 'generation loop']);
});
