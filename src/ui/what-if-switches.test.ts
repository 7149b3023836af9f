import { expect, test } from 'vitest';
import type { ExplainResult } from '../model/documents/explain.js';
import type { ManifestData } from '../model/manifest.js';
import { offeredFor } from './what-if-switches.js';

const explain = {
  stages: [{ kind: 'decode', roofline_ms: { value: 1 }, bars: [{ id: 'inefficiency.gemm' }] }],
  findings: [],
} as unknown as ExplainResult;

const offered = (gpu: string | null): string[] => {
  const hardware = gpu === null ? {} : { gpu_name: gpu };
  const manifest = { tables: {}, hardware, workload: null } as unknown as ManifestData;
  return offeredFor({ manifest }, explain).filter((change) => change.startsWith('dtype='));
};

test('equal ranks and links are offered for findings about them', () => {
  const manifest = { tables: {}, hardware: {}, workload: null } as unknown as ManifestData;
  const findings = [{ gain: { what_if: 'equal-links' } }];
  const ofRanks = (document: object) =>
    offeredFor({ manifest }, { ...explain, ...document }).filter((change) => /ranks?|links/.test(change));
  expect(ofRanks({ findings })).toEqual(['equal-links']);
  expect(ofRanks({})).toEqual([]);
});

test('float8 is offered only on devices with a peak in it', () => {
  expect(offered('NVIDIA H200')).toEqual(['dtype=float8', 'dtype=int4']);
  expect(offered('NVIDIA A100-SXM4-80GB')).toEqual(['dtype=int4']);
  expect(offered(null)).toEqual(['dtype=int4']);
});
