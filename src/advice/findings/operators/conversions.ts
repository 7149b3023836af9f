import { gainOf } from '../gain.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import { classBars, minShare } from '../stage-rule.js';
import { callsOf, instanceWord, count, everyInstance, ms, part, plural } from '../words.js';
import { checkOnCpu } from './copied-context.js';
import { type OperatorStage, operatorsSql } from './operator-stages.js';

/** Types of weights and activations. Integers are ids, masks and positions. */
const floatingTypes = "'^(double|float|c10::(Half|BFloat16|Float8.*))$'";

/**
 * Conversions of weights and activations by type and shape: every cast calls `copy_` between two types. One preempted call does not count
 * as the usual one.
 */
const castsSql = ({ kind, instances }: OperatorStage): string =>
  `SELECT json_extract_string(input_types, '$[1]') AS from_type, json_extract_string(input_types, '$[0]') AS to_type, json_extract_string(input_shapes, '$[0]') AS shape,
     round(count(*) / ${instances}, 2) AS per_instance, round(median(coalesce(self_dur_ns, dur_ns)) / 1e3, 2) AS us,
     round(median(coalesce(self_dur_ns, dur_ns)) * count(*) / 1e6 / ${instances}, 4) AS ms
   FROM (${operatorsSql(kind)})
   WHERE name = 'aten::copy_' AND json_extract_string(input_types, '$[0]') <> json_extract_string(input_types, '$[1]')
     AND regexp_matches(json_extract_string(input_types, '$[0]'), ${floatingTypes}) AND regexp_matches(json_extract_string(input_types, '$[1]'), ${floatingTypes})
   GROUP BY ALL ORDER BY ms DESC, from_type, to_type, shape`;

type Row = {
  from_type: string;
  to_type: string;
  shape: string;
  per_instance: number;
  us: number;
  ms: number;
};

/** Tensors that are converted to another type. */
export async function findConversions(
  context: FindingContext,
  stage: OperatorStage,
): Promise<FoundDraft | string> {
  const { kind, wall_ms: wall } = stage;
  const { rows, evidence } = await context.evidence<Row>(castsSql(stage), (evidenceRows) =>
    evidenceRows
      .slice(0, 2)
      .map((row) => `${row.from_type} to ${row.to_type} ${row.shape}: ${callsOf(row)}`)
      .join('; '),
  );
  const time = rows.reduce((sum, row) => sum + row.ms, 0);
  const n = rows.reduce((sum, row) => sum + row.per_instance, 0);
  if (time < minShare * wall) return `conversions between types take ${part(time, wall)}`;
  const [first] = rows;
  return {
    stage: kind,
    title: (share) =>
      `Casts: ${plural(n, 'cast')} ${count(n) === '1' ? 'takes' : 'take'} ${share} of ${everyInstance(kind)}, mostly from ${first!.from_type} to ${first!.to_type}`,
    at_stake_ms: time,
    cause: `${instanceWord(kind)} spends ${ms(time)} on converting tensors to another type. Weights stored in a type other than the compute type are converted again in every step.`,
    change: {
      kind: 'code',
      text: 'Convert weights and activations to the compute type once, before the loop.',
      example: 'model = model.to(torch.float32)  # or bfloat16 if this CPU supports it',
    },
    gain: gainOf(wall, time, 'The conversions are removed, and no other operator gets slower.'),
    confidence: 'high',
    bars: classBars(context, kind, ['copy']),
    evidence: [evidence],
    check: checkOnCpu,
  };
}
