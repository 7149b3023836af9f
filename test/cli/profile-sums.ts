import { expect } from 'vitest';
import type { z } from 'zod';
import type { profileDocumentSchema, StageResult } from '../../src/model/documents/profile.js';

export type Profile = z.infer<typeof profileDocumentSchema>;
export const stageOf = (profile: Profile, kind: StageResult['kind']) =>
  profile.data.stages.find((candidate) => candidate.kind === kind)!;

/** Expects that the parts of each stage sum to its time. */
export function expectSums({ data }: Profile): void {
  for (const stage of data.stages) {
    if (stage.kind === 'sampling') continue;
    const parts = stage.breakdown!;
    const sum =
      parts.operators_ms + parts.gaps_between_operators_ms + parts.gaps_at_edges_ms + parts.remainder_ms;
    expect(sum / parts.stage_ms).toBeCloseTo(1, 9);
    // Gaps are the time between operators, so nothing may remain.
    expect(Math.abs(parts.remainder_ms / parts.stage_ms)).toBeLessThan(1e-9);
    const classes = parts.by_class.reduce((total, row) => total + row.ms, 0);
    const layers = parts.by_layer.reduce((total, row) => total + row.ms, 0);
    expect(classes / parts.operators_ms).toBeCloseTo(1, 9);
    expect(layers / parts.operators_ms).toBeCloseTo(1, 9);
  }
}
