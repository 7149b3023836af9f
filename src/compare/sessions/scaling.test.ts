import { expect, test } from 'vitest';
import type { StageWaterfall } from '../../model/documents/explain.js';
import type { Session } from '../../session/open.js';
import { figure, missing } from '../../model/figure.js';
import { scalingOf } from './scaling.js';

const side = (
  ranks: number | null,
  ms: number,
  communication: number,
  tokens: number | null = null,
  model: string | null = null,
) => ({
  session: {
    manifest: { workload: model === null ? null : { model: { name: model, config: {} } } },
  } as unknown as Session,
  ranks,
  waterfalls: [
    {
      kind: 'decode',
      measured_ms: figure(ms, 'ms', 'measured'),
      clean_ms: missing('no_clean_execution', 'none'),
      bars: [
        { id: 'kernels', ms: ms - communication },
        { id: 'exposed_comm.wire', ms: 0.75 * communication },
        { id: 'exposed_comm.skew', ms: 0.25 * communication },
      ],
    } as unknown as StageWaterfall,
  ],
  stages: [{ phase: 'decode', value: { tokens } }] as never,
});

test('one, two and four ranks share a step of 8 ms, worked by hand', () => {
  expect(scalingOf([side(1, 8, 0), side(2, 5, 1), side(4, 4, 2)])).toEqual([
    {
      phase: 'decode',
      values: [
        { ranks: 1, speedup: 1, efficiency: 1, communication_share: 0 },
        { ranks: 2, speedup: 1.6, efficiency: 0.8, communication_share: 0.2 },
        { ranks: 4, speedup: 2, efficiency: 0.5, communication_share: 0.5 },
      ],
    },
  ]);
});

test('steps of different sizes compare by tokens if all are counted', () => {
  const [twoCounted] = scalingOf([side(1, 8, 0, 8), side(2, 8, 0, 16)]);
  expect(twoCounted!.values[1]).toMatchObject({ speedup: 2, efficiency: 1 });
  const [uncounted] = scalingOf([side(1, 8, 0, 8), side(2, 8, 0)]);
  expect(uncounted!.values[1]).toMatchObject({ speedup: 1, efficiency: 0.5 });
});

test('reports nothing for equal or unknown numbers of ranks', () => {
  expect(scalingOf([side(2, 8, 0), side(2, 5, 1)])).toEqual([]);
  expect(scalingOf([side(2, 8, 0), side(null, 5, 1)])).toEqual([]);
  expect(scalingOf([side(2, 8, 0), side(null, 5, 1), side(4, 4, 0)])[0]!.values[1]).toBeNull();
});

test('sessions of different models, or of one unknown model, do not scale', () => {
  expect(scalingOf([side(1, 8, 0, null, 'a'), side(2, 5, 1, null, 'a')])).toHaveLength(1);
  expect(scalingOf([side(1, 8, 0, null, 'a'), side(2, 5, 1, null, 'b')])).toEqual([]);
  expect(scalingOf([side(1, 8, 0, null, 'a'), side(2, 5, 1)])).toEqual([]);
});

test('a warm-up does not scale', () => {
  const warmup = (ranks: number) => {
    const { waterfalls, ...rest } = side(ranks, 8, 0);
    return {
      ...rest,
      waterfalls: waterfalls.map((waterfall) => ({ ...waterfall, kind: 'warmup' as const })),
    };
  };
  expect(scalingOf([warmup(1), warmup(2)])).toEqual([]);
});
