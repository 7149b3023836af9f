import { gainOf } from '../gain.js';
import { compileRanges, longHostNs } from '../finding-tables.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import { minShare } from '../stage-rule.js';
import { instancesOf, instanceWord, everyInstance, ms, part } from '../words.js';
import { plural } from '../../../vocabulary/format.js';
import { checkOnCpu } from './copied-context.js';
import { type OperatorStage, operatorsSql } from './operator-stages.js';

/** Outermost compiler ranges by step; the first step always compiles. */
const compiledSql = ({ kind }: OperatorStage): string =>
  `WITH compiling AS (
     SELECT window_id, tid, name, start_ns, dur_ns, max(start_ns + dur_ns) OVER (PARTITION BY window_id, tid ORDER BY start_ns, dur_ns DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS covered_ns
     FROM (${operatorsSql(kind)}) WHERE dur_ns > ${longHostNs} AND regexp_matches(name, '${compileRanges}', 'i')),
   outermost AS (SELECT * FROM compiling WHERE covered_ns IS NULL OR start_ns >= covered_ns),
   step AS (SELECT stage_id AS window_id, row_number() OVER (ORDER BY start_ns) AS step FROM windows WHERE kind = '${kind}')
   SELECT step, count(*) AS times, round(sum(dur_ns) / 1e6, 3) AS ms, any_value(name) AS outermost_range
   FROM outermost JOIN step USING (window_id) GROUP BY step ORDER BY step`;

type Row = { step: number; times: number; ms: number };

/** Code is compiled in steps after the first one. */
export async function findRecompilation(
  context: FindingContext,
  stage: OperatorStage,
): Promise<FoundDraft | string> {
  const { kind, wall_ms: wall, instances } = stage;
  const { rows, evidence } = await context.evidence<Row>(compiledSql(stage), (evidenceRows) =>
    evidenceRows
      .slice(0, 4)
      .map((row) => `step ${row.step}: ${plural(row.times, 'compilation')}, ${ms(row.ms)}`)
      .join('; '),
  );
  const later = rows.filter(({ step }) => step > 1);
  const time = later.reduce((sum, row) => sum + row.ms, 0) / instances;
  if (time < minShare * wall)
    return `compiling after the first step takes ${part(time, wall)} (${later.length} of ${instances} steps)`;
  return {
    stage: kind,
    title: (share) =>
      `Recompilation: ${later.length} of ${instancesOf(instances, kind)} compile again, ${share} of ${everyInstance(kind)}`,
    at_stake_ms: time,
    cause: `${instanceWord(kind)} takes ${ms(wall)}; ${ms(time)} of it is compilation, in ${plural(later.length, 'step')} after the first. Inputs with a new shape, type or value make torch.compile specialize again.`,
    change: {
      kind: 'code',
      text: 'Mark the sizes that vary as dynamic, pad them to a few lengths, or warm up every shape before serving; TORCH_LOGS=recompiles names the guard that failed.',
      example: 'torch.compile(model, dynamic=True); torch._dynamo.mark_dynamic(x, 0)',
    },
    gain: gainOf(
      wall,
      time,
      'Nothing is compiled after the first step; code for dynamic sizes is as fast as specialized code.',
      { low_ms: 0.9 * time },
    ),
    confidence: 'high',
    bars: [],
    evidence: [evidence],
    check: checkOnCpu,
  };
}
