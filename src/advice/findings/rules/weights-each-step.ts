import { totalWork } from '../../../llm/work-totals.js';
import { necessaryOps } from '../../../facts/model-work.js';
import { expectedGain } from '../../what-if/expected-gains.js';
import { plannedStates } from '../../what-if/initial-state.js';
import type { StageState } from '../../what-if/stage-state.js';
import { streamFormat, streamRate } from '../../what-if/weight-streams.js';
import { checkProfile, engineRule, stageSql } from '../engine-rule.js';
import type { FoundDraft } from '../rule.js';
import { boundOfStage } from '../session-analyses.js';
import { ms, part } from '../words.js';
import { plural } from '../../../vocabulary/format.js';

/** Share of a memory-bound step's bytes that GEMMs must read for weights to be the cause. */
const minWeightShare = 0.5;
/** Share of the step that a change must save. */
const minSavingShare = 0.1;

/** A memory-bound decode step of the embedded engine: smaller weights, or more sequences per read of the weights. */
export const weightsEachStep = engineRule(
  {
    id: 'weights_each_step',
    title: 'Memory-bound decode: weights read in every step',
    docs: {
      finds: 'A decode step of the embedded engine is limited by reading weights.',
      needs: 'a session of `inferscope profile`',
      gain: 'The same step with weight-stream rates measured on this machine: smaller weights, or more sequences per read.',
      change: 'Quantize weights, or decode more sequences per step.',
      withheld: 'a change saves less than 10 %, or GEMMs move less than half of the bytes',
    },
    references: [],
  },
  async (context, { kind, wall_ms: wall, waterfall }) => {
    if (kind !== 'decode') return ['judged for decode only'];
    const [state] = await plannedStates(context.session, [waterfall], []);
    const roof = waterfall.roofline_ms.value;
    if (!state || 'reason' in state.needs || roof === null) return ["the model's arithmetic is not known"];
    if ((await boundOfStage(context, kind)) !== 'memory') return ['not memory-bound'];
    const { model, shape } = state.needs;
    const ops = necessaryOps(model, shape);
    const gemms = totalWork(ops.filter((op) => op.class === 'gemm')).bytes_total;
    const all = totalWork(ops).bytes_total;
    if (gemms < minWeightShare * all) return [`GEMMs move ${part(gemms, all)} of its necessary bytes`];
    const changes = measuredChanges(state);
    if (changes.length === 0) return [`no change measured on this CPU saves ${part(minSavingShare, 1)}`];
    const batch = shape.batchSize;
    const sequences = plural(batch, 'sequence');
    const { evidence } = await context.evidence(
      stageSql(kind),
      () => `its necessary bytes alone take ${ms(roof)} of ${ms(wall)}`,
    );
    // A busy machine does not change the necessary bytes; the measured distance from them may be noise.
    const { busy } = context.machine;
    return changes.map(({ change, flag, what_if, gain }): FoundDraft => ({
      stage: kind,
      title: `Memory-bound decode: each step reads all weights ${gain.per === 'token' ? `for ${sequences}` : `in ${model.storage.weights.name}`}`,
      at_stake_ms: busy ? roof : gain.per === 'token' ? gain.expected_ms * batch : gain.expected_ms,
      cause: `A decode step takes at least ${ms(roof)} for its bytes. GEMMs move ${part(gemms, all)} of them: they read all weights once per step.`,
      change: { kind: 'flag', text: change, example: flag },
      gain: busy ? null : { ...gain, what_if },
      confidence: 'medium',
      // Smaller weights also shorten the GEMMs' time above the roofline.
      bars: ['roofline', 'serial', 'inefficiency.gemm'],
      evidence: [evidence],
      check: checkProfile,
    }));
  },
);

/** Changes with a gain computed from the weight-stream rates measured on this machine. */
function measuredChanges(state: StageState) {
  if ('reason' in state.needs) return [];
  const { weightStreams, needs } = state;
  const { model, shape } = needs;
  const format = streamFormat(model.storage);
  const larger = weightStreams
    .filter((stream) => stream.format === format && stream.batch_size > shape.batchSize)
    .map((stream) => stream.batch_size)
    .toSorted((x, y) => x - y)[0];
  const int4 = format === 'float32' && streamRate(weightStreams, 'int4', shape.batchSize) !== null;
  const changes = [
    ...(int4 ? [{ change: 'Use int4 weights.', flag: '--dtype int4', what_if: 'int4' }] : []),
    ...(larger === undefined
      ? []
      : [
          {
            change: `Decode ${larger} sequences per step.`,
            flag: `--batch-size ${larger}`,
            what_if: `batch-size=${larger}`,
          },
        ]),
  ];
  return changes.flatMap((change) => {
    const expected = expectedGain(state, change.what_if);
    if (expected === null || expected.expected_ms < minSavingShare * expected.before_ms) return [];
    const { before_ms: _before, ...gain } = expected;
    return [{ ...change, gain }];
  });
}
