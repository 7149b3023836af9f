import { expect, test } from 'vitest';
import { hostPlace } from './host-place.js';
import type { MemoryRows } from './rows.js';

const sampleOf = (bytes: number) => [
  { t_ns: 0, bytes: bytes / 10 },
  { t_ns: 1, bytes },
];
const recorded = (what: string, stage: string | null, bytes: number, point: 'baseline' | null = null) => ({
  device: null,
  rank: 0,
  t_ns: 0,
  what,
  stage,
  detail: null,
  bytes,
  point,
  source: 'hand',
  blocks: null,
});
const rows = (model: number | null): MemoryRows => ({
  used: new Map(),
  usedSource: null,
  processes: [],
  rss: sampleOf(300e6),
  file: sampleOf(170e6),
  anonymous: sampleOf(125e6),
  recorded: [
    recorded('rss', null, 60e6, 'baseline'),
    ...(model === null ? [] : [recorded('model_file', 'end', model)]),
  ],
  phases: [],
});

test('pages of the model file are weights, not the framework', () => {
  const frameworkOf = (model: number | null) =>
    hostPlace(rows(model), null, { baselineBytes: 60e6, weightBytes: 168e6, kvHeadsKnown: true }).parts.find(
      ({ component }) => component === 'framework_overhead',
    )!;
  // 170 MB of files and 12.5 MB allocated before the engine was loaded.
  expect(frameworkOf(null).bytes).toBe(182.5e6);
  expect(frameworkOf(98e6).bytes).toBe(84.5e6);
  expect(frameworkOf(98e6).evidence).toContain('without 98.00 MB of the model file');
});
