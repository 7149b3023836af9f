import { launchingWithout } from '../findings/gain.js';
import { withHostLimit } from './host-limit.js';
import { type ComputedGain, type Effect, type StageState, unchanged } from './stage-state.js';

/** Minimum uncertainty of a gain, as a share of it. */
const minError = 0.05;

const noFinding = {
  'fused-attention': 'no rule finds unfused attention in this stage',
  'fused-elementwise': 'no rule finds chains of elementwise kernels in this stage',
} as const;

/** Bars that a fused kernel shortens: time above the roofline of the kernels that it replaces. */
const elementwiseBars = new Set([
  'nonessential.elementwise',
  'nonessential.copy',
  'nonessential.quantization',
  'inefficiency.elementwise',
  'inefficiency.norm',
]);

/** Whether fusing elementwise kernels can remove time. */
export const hasElementwise = (bars: readonly { id: string; ms: number }[]): boolean =>
  bars.some(({ id, ms }) => elementwiseBars.has(id) && ms > 0);

/** Gain computed by a rule: taken from the bars it names, plus host time for as many launches. */
export function fromFindings(state: StageState, word: 'fused-attention' | 'fused-elementwise'): Effect {
  const first = state.findings.find(
    ({ gain, stage }) => gain?.what_if === word && stage === state.waterfall.kind && gain.expected_ms > 0,
  );
  if (first) return applyFinding(state, first);
  return word === 'fused-elementwise' ? fusedElementwise(state) : unchanged(state, noFinding[word]);
}

function applyFinding(state: StageState, { gain, bars: ids, title, launches = 0 }: ComputedGain): Effect {
  const { expected_ms: expected, low_ms: low, high_ms: high, assumption } = gain!;
  const positiveIds = ids.filter((id) => (state.bars.get(id) ?? 0) > 0);
  const barMs = positiveIds.reduce((sum, id) => sum + state.bars.get(id)!, 0);
  const removedMs = Math.min(expected, barMs);
  const bars = new Map(
    [...state.bars].map(([id, ms]) => [id, positiveIds.includes(id) ? ms * (1 - removedMs / barMs) : ms]),
  );
  const hostMs = state.hostMs === null ? null : launchingWithout(state.hostMs, state.launches ?? 0, launches);
  return {
    state: withHostLimit({ ...state, hostMs }, bars),
    explanations: new Map(positiveIds.map((id) => [id, title])),
    // A rule's limit is the time it found; the fused kernel may save more.
    lessMs: Math.max(high - expected, minError * removedMs),
    moreMs: Math.max(expected - low, minError * removedMs),
    assumptions: [assumption],
  };
}

/** Fuses everything between two GEMMs into one kernel; a quarter of the time is assumed to stay, as with a compiler. */
function fusedElementwise(state: StageState): Effect {
  const elementwise = [...state.bars].filter(([id, ms]) => elementwiseBars.has(id) && ms > 0);
  const sum = elementwise.reduce((total, [, ms]) => total + ms, 0);
  if (sum === 0) return unchanged(state, noFinding['fused-elementwise']);
  const remainingShare = 0.25;
  const bars = new Map(
    [...state.bars].map(([id, ms]) => [
      id,
      elementwise.some(([elementwiseId]) => elementwiseId === id) ? ms * remainingShare : ms,
    ]),
  );
  return {
    state: withHostLimit(state, bars),
    explanations: new Map(elementwise.map(([id]) => [id, 'one kernel between two GEMMs'])),
    lessMs: remainingShare * sum,
    moreMs: remainingShare * sum,
    assumptions: [
      'removes 75 % of the time of elementwise kernels, norms and casts above roofline; launches stay',
    ],
  };
}
