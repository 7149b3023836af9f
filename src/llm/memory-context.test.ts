import { expect, test } from 'vitest';
import { readArchitecture } from './read-architecture.js';
import { contextPart } from './memory-context.js';
import { withDefaults, type MemoryRequest } from './memory-request.js';
import { findPreset } from './presets.js';
import { floatStorage } from './storage.js';

const a = readArchitecture(findPreset('llama-3.2-1b')!.config);
const contextOf = (outputLen: number, change: Partial<MemoryRequest> = {}) =>
  contextPart(
    withDefaults(a, {
      batchSize: 1,
      inputLen: 128,
      outputLen,
      storage: floatStorage('bfloat16'),
      gpu: { name: 'NVIDIA H200', totalBytes: 150e9, architecture: 'Hopper' },
      ...change,
    }),
  );
const mib = ({ bytes }: { bytes: number }) => bytes / 2 ** 20;

// Driver − torch's reserve of runs on an H200, MiB, by generated tokens; it is the same for all models.
test.each([
  { tokens: 0, recorded: [694.8] },
  { tokens: 8, recorded: [694.8] },
  { tokens: 16, recorded: [696.8, 696.8, 696.8, 696.8] },
  { tokens: 24, recorded: [696.8] },
  { tokens: 32, recorded: [696.8, 696.8, 696.8, 696.8, 696.8, 696.8] },
  { tokens: 48, recorded: [698.8] },
  { tokens: 64, recorded: [698.8] },
  { tokens: 512, recorded: [736.8] },
])('$tokens tokens: fused attention in 16 bits', ({ tokens, recorded }) => {
  for (const recordedMib of recorded)
    expect(Math.abs(mib(contextOf(tokens)) - recordedMib)).toBeLessThan(0.5);
});

// Consecutive samples (decode steps begun, from 0) between which the driver's count rose by 2 MiB in the first repeat.
const steps1b = [
  [12, 13],
  [45, 47],
  [69, 70],
  [75, 76],
  [107, 108],
  [137, 139],
  [163, 165],
  [169, 171],
  [200, 201],
  [231, 233],
  [259, 261],
  [264, 265],
  [295, 297],
  [326, 327],
  [353, 355],
  [356, 358],
  [388, 390],
  [419, 421],
  [448, 450],
  [451, 453],
  [482, 483],
];

test.each([
  { model: 'llama-3.2-1b, batch 16, 128 + 512', allocatingSteps: steps1b },
  {
    model: 'qwen2.5-0.5b, batch 8, 512 + 64',
    allocatingSteps: [
      [12, 13],
      [45, 46],
    ],
  },
  {
    model: 'llama-2-7b, batch 4, 512 + 48',
    allocatingSteps: [
      [13, 14],
      [45, 46],
    ],
  },
])(
  'predicts each chunk that the driver allocated within 3 steps of its samples: $model',
  ({ allocatingSteps }) => {
    const chunks = (steps: number) => (mib(contextOf(Math.max(0, steps) + 1)) - mib(contextOf(0))) / 2;
    for (const [before, [from, to]] of allocatingSteps.entries()) {
      expect(chunks(from! - 2), `before step ${from}`).toBeLessThanOrEqual(before);
      expect(chunks(to! + 4), `after step ${to}`).toBeGreaterThanOrEqual(before + 1);
    }
  },
);

test('float32 and unfused attention have no plans (686.8 MiB recorded for both), and a static cache has one length', () => {
  expect(mib(contextOf(48, { storage: floatStorage('float32') }))).toBe(687);
  expect(mib(contextOf(16, { attention: 'eager' }))).toBe(687);
  expect(mib(contextOf(512, { cache: 'static' }))).toBe(695);
});

test('has lower confidence beyond the measured steps and on other GPUs', () => {
  expect(contextOf(512).confidence).toBe('medium');
  expect(contextOf(4096).confidence).toBe('low');
  const a10g = contextOf(512, { gpu: { name: 'NVIDIA A10G', totalBytes: 24e9, architecture: 'Ampere' } });
  expect(a10g).toEqual(
    contextOf(8, { gpu: { name: 'NVIDIA A10G', totalBytes: 24e9, architecture: 'Ampere' } }),
  );
});
