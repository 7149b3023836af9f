import { gainOf } from '../gain.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import { classBars, minShare } from '../stage-rule.js';
import { instanceWord, everyInstance, ms, part, plural } from '../words.js';
import { checkOnCpu } from './copied-context.js';
import { type OperatorStage, operatorsSql } from './operator-stages.js';
import { weightGemmsSql } from './weight-gemms.js';

/** Operators that write a tensor without computing: copies within a type, constants, masks, positions, random numbers. */
const writeOperators = [
  'aten::copy_',
  'aten::fill_',
  'aten::zero_',
  'aten::triu',
  'aten::tril',
  'aten::arange',
  'aten::normal_',
  'aten::random_',
];
/** Multiple of the step's own activations: smaller tensors may be activations. */
const minActivationMultiple = 4;
/** Elements below which call overhead dominates a write. */
const minElements = 65_536;
/** Share of the steps that write the same sizes. */
const minStepShare = 0.75;

type Row = {
  operator: string;
  shape: string;
  elements: number;
  per_step: number;
  us: number;
  ms: number;
  /** Whether it copies a tensor with the sizes of a GEMM's weights. */
  of_weights: boolean;
};

const writesSql = (stage: OperatorStage, context: FindingContext): string =>
  `WITH write AS (
     SELECT name AS operator, json_extract_string(input_shapes, '$[0]') AS shape, list_aggregate(json_extract(input_shapes, '$[0]')::BIGINT[], 'product') AS elements,
       window_id, coalesce(self_dur_ns, dur_ns) AS ns FROM (${operatorsSql(stage.kind)})
     WHERE name IN (${writeOperators.map((name) => `'${name}'`).join(', ')}) AND json_extract_string(input_shapes, '$[0]') LIKE '[%'
       AND (name <> 'aten::copy_' OR json_extract_string(input_types, '$[0]') = json_extract_string(input_types, '$[1]'))),
   gemm AS (SELECT token_rows, inner_size, outer_size FROM (${weightGemmsSql(context)}) WHERE kind = '${stage.kind}'),
   activations AS (SELECT coalesce(max(token_rows * inner_size), 0) AS elements FROM gemm),
   weights AS (SELECT DISTINCT unnest([format('[{},{}]', inner_size, outer_size), format('[{},{}]', outer_size, inner_size)]) AS shape FROM gemm)
   SELECT operator, shape, any_value(w.elements)::DOUBLE AS elements, round(count(*) / ${stage.instances}, 2) AS per_step,
     round(avg(ns) / 1e3, 2) AS us, round(sum(ns) / 1e6 / ${stage.instances}, 4) AS ms, operator = 'aten::copy_' AND shape IN (FROM weights) AS of_weights
   FROM write w, activations a WHERE w.elements >= greatest(${minElements}, ${minActivationMultiple} * a.elements)
   GROUP BY operator, shape HAVING count(DISTINCT window_id) >= ${minStepShare} * ${stage.instances} ORDER BY ms DESC, operator, shape`;

/** Tensors of the same size, far larger than the step's activations, are copied or filled in every step. */
export async function findRepeatedTensors(
  context: FindingContext,
  stage: OperatorStage,
): Promise<FoundDraft | string> {
  const { kind, wall_ms: wall, instances } = stage;
  if (kind !== 'decode' && kind !== 'mixed') return 'only steps that generate tokens are judged';
  if (instances < 4) return `${plural(instances, 'step')}: too few to see what recurs`;
  const { rows, evidence } = await context.evidence<Row>(writesSql(stage, context), (evidenceRows) =>
    evidenceRows
      .slice(0, 3)
      .map((row) => `${row.operator} ${row.shape}: ${plural(row.per_step, 'call')} per step, ${ms(row.ms)}`)
      .join('; '),
  );
  const time = rows.reduce((sum, row) => sum + row.ms, 0);
  if (time < minShare * wall)
    return `tensors of the same size written in every step take ${part(time, wall)}`;
  const n = rows.reduce((sum, row) => sum + row.per_step, 0);
  const [first] = rows;
  const weights = rows.filter(({ of_weights }) => of_weights);
  if (weights.reduce((sum, row) => sum + row.ms, 0) > time / 2) {
    const copies = weights.reduce((sum, row) => sum + row.per_step, 0);
    return {
      ...drafted(context, stage, time, evidence),
      title: (share) =>
        `Copied weights: ${plural(copies, 'copy', 'copies')} of weights take ${share} of ${everyInstance(kind)}, mostly ${weights[0]!.shape}`,
      cause: `${instanceWord(kind)} spends ${ms(time)} on copying tensors with the sizes of the weights that its GEMMs read. The copies are the same in every step.`,
      change: {
        kind: 'code',
        text: 'Use the weights in place, without clone(), contiguous() or to() in the step; store them in the layout in which the GEMMs read them.',
        example: 'F.linear(x, self.weight)  # no copy of self.weight',
      },
    };
  }
  return {
    ...drafted(context, stage, time, evidence),
    title: (share) =>
      `Rebuilt tensors: ${share} of ${everyInstance(kind)} goes to ${plural(n, 'write')} of the same sizes as in the previous step, mostly by ${first!.operator} of ${first!.shape}`,
    cause: `${instanceWord(kind)} spends ${ms(time)} on filling or copying tensors far larger than its activations, with the same sizes in every step: a mask for the longest context, a cleared buffer.`,
    change: {
      kind: 'code',
      text: 'Create them once, before the loop: a mask or positions for the longest context, sliced in each step.',
      example:
        'self.register_buffer("mask", mask, persistent=False)  # in a step: self.mask[start:end, :end]',
    },
  };
}

const drafted = (
  context: FindingContext,
  { kind, wall_ms: wall }: OperatorStage,
  time: number,
  evidence: FoundDraft['evidence'][number],
) => ({
  stage: kind,
  at_stake_ms: time,
  gain: gainOf(wall, time, 'The writes are removed, and no other operator gets slower.'),
  confidence: 'medium' as const,
  bars: classBars(context, kind, ['copy', 'elementwise', 'sampling', 'other']),
  evidence: [evidence],
  check: checkOnCpu,
});
