import { checkProfile, engineRule, gainOfMost } from '../engine-rule.js';
import { minShare } from '../stage-rule.js';
import { everyInstance, ms, part } from '../words.js';

const bar = 'nonessential.copy';
/** Share of the copies that must be Concat to name a growing cache as the cause. */
const minConcatShare = 0.5;

const copiesSql = (kind: string): string =>
  `WITH profiled AS (SELECT execution_id, stage_id FROM stages WHERE execution_id = 'profiled' AND kind = '${kind}' AND NOT warmup)
   SELECT o.op_type, round(count(*) / (SELECT count(*) FROM profiled), 2) AS per_stage, sum(o.dur_ns) / 1e6 / (SELECT count(*) FROM profiled) AS ms
   FROM profiled JOIN ops o USING (execution_id, stage_id) WHERE o.class = 'copy' GROUP BY 1 ORDER BY ms DESC, 1`;

/** Operators that only copy take a large part of a step of the embedded engine. */
export const operatorCopies = engineRule(
  {
    id: 'operator_copies',
    title: 'Operators that copy',
    docs: {
      finds: 'Operators that only copy take a large part of a step of the embedded engine.',
      needs: 'a session of `inferscope profile`',
      gain: '75 % of the time of those operators; range 50 % to all of it.',
      change: 'Export the model with a KV cache that is written in place, or fuse the copies.',
      withheld:
        'less than 5 % of the stage is affected, or the profiled and the clean pass differ by more than 10 % of the stage',
    },
    references: [],
    noise: true,
    profiledParts: true,
  },
  async (context, { kind, wall_ms: wall, waterfall }) => {
    const time = waterfall.bars.find(({ id }) => id === bar)?.ms ?? 0;
    if (time < minShare * wall) return [`operators that copy take ${part(time, wall)}`];
    const { rows, evidence } = await context.evidence<{ op_type: string | null; ms: number }>(
      copiesSql(kind),
      (evidenceRows) =>
        evidenceRows
          .slice(0, 3)
          .map((row) => `${row.op_type ?? 'copy'}: ${ms(row.ms)}`)
          .join('; '),
    );
    const concat = rows.find(({ op_type }) => op_type === 'Concat')?.ms ?? 0;
    const grows =
      context.manifest.workload?.engine.options['kv_cache'] === 'grows' && concat >= minConcatShare * time;
    const [first] = rows;
    return [
      {
        stage: kind,
        title: (share) =>
          `${grows ? 'KV cache copied: operators' : 'Operators'} that copy take ${share} of ${everyInstance(kind)}${first ? `, mostly ${first.op_type ?? 'copy'}` : ''}`,
        at_stake_ms: time,
        cause: grows
          ? "This model's KV cache grows by copying: Concat reads and writes all earlier keys and values again to append one token."
          : 'They move data between operators and compute nothing.',
        change: {
          kind: 'code',
          text: grows
            ? 'Export the model with a KV cache that is written in place.'
            : 'Export fused operators, which need no copies between them.',
          example: null,
        },
        gain: gainOfMost(time, wall),
        confidence: 'medium',
        bars: [bar],
        evidence: [evidence],
        check: checkProfile,
      },
    ];
  },
);
