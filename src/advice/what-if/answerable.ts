import { deviceOf } from '../../facts/device.js';
import { classOfBar } from '../../model/bars.js';
import type { ExplainResult } from '../../model/documents/explain.js';
import type { ManifestData } from '../../model/manifest.js';
import { stepKinds } from '../../model/record.js';
import { hasRows } from '../../model/subjects.js';
import { hasElementwise } from './finding-changes.js';
import type { Change } from './words.js';

/** Whether a session has the data for a change, by its word: a prediction could differ from the measured time. */
export function answerableChanges(
  manifest: ManifestData,
  { stages, findings }: Pick<ExplainResult, 'stages' | 'findings'>,
): (word: Change['word']) => boolean {
  const steps = stages.filter(({ kind }) => (stepKinds as readonly string[]).includes(kind));
  const hasLaunches = hasRows(manifest, 'kernels');
  // Changes of the work need necessary work, and kernels by class.
  const hasWork = steps.some(
    ({ roofline_ms: roofline, bars }) =>
      roofline.value !== null && bars.some(({ id }) => classOfBar(id) !== null),
  );
  const ruleChanges = new Set(findings.map(({ gain }) => gain?.what_if));
  return (word) => {
    switch (word) {
      case 'no-slow-rank':
      case 'equal-links':
        return ruleChanges.has(word);
      case 'cudagraph':
        return hasLaunches || ruleChanges.has(word);
      case 'no-sync':
      case 'pinned-copies':
        return hasLaunches;
      case 'fused-attention':
        return ruleChanges.has(word);
      case 'fused-elementwise':
        return ruleChanges.has(word) || stages.some(({ bars }) => hasElementwise(bars));
      case 'batch-size':
      case 'context-len':
      case 'dtype':
        return hasWork;
      case 'gpu':
        return hasWork && deviceOf(manifest, null).name !== null;
    }
  };
}
