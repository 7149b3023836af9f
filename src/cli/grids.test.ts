import { expect, test } from 'vitest';
import { pointsOf as predictPoints } from '../facts/predict/points.js';
import { planGrid } from '../capture/sweep/plan-grid.js';
import { checkRuns } from '../capture/sweep/plan-memory.js';
import { pointsOf } from './bench-points.js';
import { expandVariants } from './bench-variants.js';
import { sweepCases } from '../llm/kernel-cases.js';
import { modelCases } from '../llm/kernel-model.js';
import { presetArchitecture } from '../llm/presets.js';
import { floatStorage } from '../llm/storage.js';
import { InferscopeError } from '../model/errors.js';

const list = (length: number) => Array.from({ length }, (_, index) => index + 1);

/** The error for the grid. */
function refusal(expand: () => unknown): string {
  try {
    expand();
  } catch (error) {
    if (error instanceof InferscopeError) return `${error.code} ${error.parts.what}`;
    throw error;
  }
  return 'expanded';
}

test('a grid that is too large is rejected with its count before it is expanded', () => {
  const [thousands, hundred] = [list(9000), list(100)];
  const refusals = [
    () =>
      planGrid(
        ['estimate'],
        [
          { name: 'a', values: thousands },
          { name: 'b', values: list(10_000) },
        ],
      ),
    () =>
      checkRuns([
        { model_id: 'm', input_lengths: thousands, output_lengths: list(100), batch_sizes: hundred },
      ]),
    () =>
      sweepCases(
        ['gemm'],
        {
          batchSizes: thousands,
          seqLens: hundred,
          hiddenSizes: hundred,
          dtypes: ['float32'],
          backends: [null],
        },
        100,
      ),
    () =>
      modelCases(presetArchitecture('gpt2'), floatStorage('float32'), {
        batchSizes: thousands,
        contextLens: hundred,
      }),
    () => pointsOf('sequence', { batchSize: hundred, inputLen: thousands, outputLen: hundred, grid: true }),
    () => expandVariants(['a', 'b', 'c', 'd'].map((key) => `${key}=${hundred.join(',')}`)),
    () =>
      predictPoints(
        { batchSizes: thousands, inputLens: hundred, outputLen: null, launch: null, fusion: null },
        [],
        { launch: 'eager', fusion: 'none' },
      ),
  ].map(refusal);
  expect(refusals).toEqual([
    'E_USAGE the grid has 90000000 runs',
    'E_USAGE the grid has 90000000 runs',
    'E_USAGE the grid has 90000000 cases',
    'E_USAGE the grid has 900000 shapes',
    'E_USAGE the grid has 90000000 points',
    'E_USAGE the grid has 100000000 variants',
    'E_USAGE the grid has 900000 points',
  ]);
});
