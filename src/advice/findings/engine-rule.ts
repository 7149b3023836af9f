import { gainOf } from './gain.js';
import type { StageWaterfall } from '../../model/documents/explain.js';
import { withheldReasons } from '../../model/withheld.js';
import { literal } from '../../facts/trace/scope.js';
import type { FindingContext, FoundDraft, Rule, RuleAbout, Withheld } from './rule.js';
import { reasonAt } from './stage-rule.js';

/** A kind of stage of the embedded engine; ms per mean clean instance. */
export interface EngineStage {
  kind: 'prefill' | 'decode';
  wall_ms: number;
  waterfall: StageWaterfall;
}

/** Share of a stage: if the two passes differ by more, the profiled pass does not explain the clean one. */
const maxUnattributedShare = 0.1;

const unattributedShare = ({ waterfall, wall_ms: wall }: EngineStage): number =>
  Math.abs(waterfall.bars.find(({ id }) => id === 'unattributed')?.ms ?? 0) / wall;

type StageResults = readonly (FoundDraft | string)[];

/**
 * A rule that judges each kind of stage of the embedded engine by its waterfall.
 * @param profiledParts the rule uses parts of the profiled pass: withheld if its time differs too much from the clean pass
 * @param judge returns findings, or the reason for none, with numbers
 */
export function engineRule(
  about: RuleAbout & Pick<Rule, 'noise'> & { profiledParts?: boolean },
  judge: (context: FindingContext, stage: EngineStage) => Promise<StageResults>,
): Rule {
  const { profiledParts = false, ...rule } = about;
  return {
    ...rule,
    async find(context) {
      const stages = engineStages(context);
      if (stages.length === 0)
        return { outcome: 'not_applicable', why: 'The session has no stages of the embedded engine.' };
      const findings: FoundDraft[] = [];
      const withheld: Withheld[] = [];
      const reasons: string[] = [];
      for (const stage of stages) {
        const { kind } = stage;
        const differs = profiledParts && unattributedShare(stage) > maxUnattributedShare;
        for (const judgement of await judge(context, stage)) {
          if (typeof judgement === 'string') reasons.push(reasonAt(kind, judgement));
          else if (differs || (judgement.at_stake_ms ?? 0) > stage.wall_ms) {
            const reason = differs ? withheldReasons.passes_differ : withheldReasons.not_a_share;
            withheld.push({ title: rule.title, stage: kind, reason });
          } else findings.push(judgement);
        }
      }
      return findings.length > 0
        ? { outcome: 'fired', findings, withheld }
        : { outcome: 'not_fired', why: `${reasons.join('; ')}.`, withheld };
    },
  };
}

const engineStages = ({ waterfalls }: FindingContext): EngineStage[] =>
  waterfalls.flatMap((waterfall) => {
    const { kind, source, measured_ms: time } = waterfall;
    return source === 'profile' && (kind === 'prefill' || kind === 'decode') && time.value !== null
      ? [{ kind, wall_ms: time.value, waterfall }]
      : [];
  });

/** SQL for a stage of the embedded engine: time without the profiler, and with it operators by class and gaps. */
export const stageSql = (kind: string): string =>
  `WITH profiled AS (SELECT execution_id, stage_id FROM stages WHERE execution_id = 'profiled' AND kind = ${literal(kind)} AND NOT warmup),
   n AS (SELECT count(*) AS instances FROM profiled)
   SELECT 'stage, without the profiler' AS what, NULL AS calls, round(avg(end_ns - start_ns) / 1e6, 4) AS ms FROM stages
   WHERE execution_id = 'clean' AND kind = ${literal(kind)} AND NOT warmup
   UNION ALL SELECT o.class || ' operators', round(count(*) / any_value(instances), 2), round(sum(o.dur_ns) / 1e6 / any_value(instances), 4)
   FROM profiled JOIN ops o USING (execution_id, stage_id), n GROUP BY o.class
   UNION ALL SELECT g.cause, round(count(*) / any_value(instances), 2), round(sum(g.dur_ns) / 1e6 / any_value(instances), 4)
   FROM profiled JOIN gaps g USING (execution_id, stage_id), n GROUP BY g.cause ORDER BY ms DESC, what`;

export const checkProfile =
  'run inferscope profile with the change, then: inferscope explain @last~1 --verify @last';

/** Gain for a bar that a change removes and partly replaces: 75 % of it, range 50 to 100 %. */
export function gainOfMost(ms: number, wallMs: number): FoundDraft['gain'] {
  return gainOf(wallMs, 0.75 * ms, 'The replacement takes a quarter of this time.', {
    low_ms: 0.5 * ms,
    high_ms: ms,
  });
}
