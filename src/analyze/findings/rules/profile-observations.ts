import type { Diagnosis, ProfileResult } from '../../../model/documents/profile.js';
import { doubt } from '../doubt.js';
import { observationSql } from '../queries/profile-queries.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import { profileOf } from '../session-analyses.js';

/** What the observations of an embedded engine's profile (src/analyze/observations.ts) mean in bars of its waterfall. */
const barsOf: Record<string, string[]> = {
  // Smaller weights shorten what products take over the roofline as well.
  weights_per_step: ['roofline', 'serial', 'inefficiency.gemm'],
  prefill_near_peak: ['roofline'],
  prefill_far_from_peak: ['serial', 'inefficiency.gemm'],
  kv_cache_copied: ['nonessential.copy'],
  copies: ['nonessential.copy'],
  runtime_call: ['host.runtime_call'],
  runtime_dispatch: ['host.runtime_dispatch'],
};
/** Bars that the change named beside them takes away altogether; the others only shrink by an unknown part. */
const removable = new Set(['kv_cache_copied', 'copies', 'runtime_call', 'runtime_dispatch']);

/** The diagnosis of `inferscope profile`, observation by observation, and its suggestions as their gains. */
export const profileObservations: Rule = {
  id: 'profile_observations',
  title: "Observations of the embedded engine's profile",
  references: [],
  async find(context) {
    const profile = await profileOf(context);
    if (!profile)
      return { outcome: 'not_applicable', why: 'The session is no profile of the embedded engine.' };
    const told = profile.diagnosis ?? [];
    const seen = told.filter(({ id }) => id !== 'verdict' && id !== 'nothing_significant');
    const findings: FoundDraft[] = [];
    for (const one of seen) findings.push(await finding(context, one, profile));
    const withheld = (profile.withheld ?? [])
      .filter(({ kind }) => kind === 'observation')
      .map(({ id, stage, reason }) => ({ title: id, stage, reason }));
    if (findings.length > 0) return { outcome: 'fired', findings, withheld };
    return {
      outcome: 'not_fired',
      withheld,
      why:
        told.find(({ id }) => id === 'nothing_significant')?.text ?? 'No observation passed its threshold.',
    };
  },
};

async function finding(
  context: FindingContext,
  { id, stage, text, decision, share }: Diagnosis,
  profile: ProfileResult,
): Promise<FoundDraft> {
  const measured = profile.stages.find(({ kind }) => kind === stage)?.duration_ms.value ?? null;
  const atStake = share.value === null || measured === null ? null : share.value * measured;
  const suggestion = profile.suggestions.find((one) => one.stage === stage && one.per === 'instance');
  const { evidence } = await context.evidence(observationSql(id, stage, context.waterfalls), () => text);
  const about = {
    stage,
    title: text.replace(/\.$/, ''),
    cause: decision === null ? text : `${decision[0]!.toUpperCase()}${decision.slice(1)}.`,
    confidence: 'medium' as const,
    bars: barsOf[id] ?? [],
    evidence: [evidence],
    check: 'inferscope profile with the change, then: inferscope session compare @last~1 @last',
  };
  if (id === 'weights_per_step' && suggestion !== undefined) {
    const { before_ms, expected_ms, low_ms, high_ms, change, flag, what_if, assumption } = suggestion;
    const expected = before_ms - expected_ms;
    return {
      ...about,
      at_stake_ms: Math.max(expected, atStake ?? 0),
      change: { kind: 'flag', text: `Take ${change}.`, example: flag },
      gain: {
        expected_ms: expected,
        low_ms: Math.max(0, before_ms - high_ms),
        high_ms: before_ms - low_ms,
        after_ms: expected_ms,
        assumption,
        what_if,
      },
    };
  }
  const change: FoundDraft['change'] = {
    kind: 'config',
    text:
      decision === null
        ? 'Nothing to change follows from it.'
        : `${decision[0]!.toUpperCase()}${decision.slice(1)}.`,
    example:
      id === 'idle_cores'
        ? `--threads ${profile.workload.threads === null ? '<cores>' : profile.workload.threads + 1}`
        : null,
  };
  if (!removable.has(id) || atStake === null || measured === null) return doubt({ ...about, change });
  return {
    ...about,
    at_stake_ms: atStake,
    change,
    gain: {
      expected_ms: atStake * 0.75,
      low_ms: atStake * 0.5,
      high_ms: atStake,
      after_ms: measured - atStake * 0.75,
      assumption: 'Nothing of this part is left but a quarter, for what replaces it.',
      what_if: null,
    },
  };
}
