import type { ExplainResult, Finding, StageWaterfall } from '../../model/documents/explain.js';
import { msOf, overlap, percentOf, type StoredFacts, type StoredPart } from './stored-part.js';

const ofStage = (facts: StoredFacts, stage: string | null) =>
  facts.question.stages.length === 0 || stage === null || facts.question.stages.includes(stage);

/** Findings whose rule, title, cause or change share words with the question; the best match first. */
export function matchedFindings(facts: StoredFacts, most = 2): StoredPart[] {
  const { explained, question } = facts;
  return explained.findings
    .filter(({ stage }) => ofStage(facts, stage))
    .map((finding) => ({
      finding,
      score:
        3 *
          overlap(
            question.tokens,
            `${finding.rule.replaceAll('_', ' ')} ${ruleTitle(explained, finding.rule)}`,
          ) +
        2 * overlap(question.tokens, finding.title) +
        overlap(question.tokens, `${finding.bars.join(' ')} ${finding.cause}`),
    }))
    .filter(({ score }) => score >= 3)
    .toSorted((a, b) => b.score - a.score)
    .slice(0, most)
    .map(({ finding }) => findingPart(finding));
}

/** What to change: the first findings that are not hidden by others. */
export function firstFindings(facts: StoredFacts, most = 3): StoredPart[] {
  const own = facts.explained.findings.filter(
    ({ stage, severity }) => severity !== 'info' && ofStage(facts, stage),
  );
  if (own.length > 0) return own.slice(0, most).map(findingPart);
  const { rules } = facts.explained;
  const looked = rules.filter(({ outcome }) => outcome !== 'not_applicable').length;
  const text =
    looked === 0
      ? 'No rule could look at this session: it holds nothing that they judge by.'
      : `Nothing significant to change was found: ${looked} rules looked.`;
  return [{ text, sql: null, from: 'findings', rows: 0 }];
}

/** Rules of the question's subject that looked and found nothing, or could not look. */
export function silentRules({ explained, question }: StoredFacts): StoredPart[] {
  return explained.rules
    .filter(({ outcome }) => outcome !== 'fired')
    .map((rule) => ({
      rule,
      score: overlap(question.tokens, `${rule.rule.replaceAll('_', ' ')} ${rule.title}`),
    }))
    .filter(({ score }) => score >= 2)
    .toSorted((a, b) => b.score - a.score)
    .slice(0, 1)
    .map(({ rule: { title, outcome, why } }) => ({
      text: `${title}: ${outcome === 'not_fired' ? 'not found' : 'cannot be told'}; ${why.replace(/[.\s]+$/, '')}.`,
      sql: null,
      from: 'findings',
      rows: 0,
      ...(outcome === 'not_fired' ? {} : { silent: true as const }),
    }));
}

function findingPart({
  title,
  cause,
  change,
  gain,
  evidence,
  at_stake_ms,
  at_stake_share,
}: Finding): StoredPart {
  const stake =
    at_stake_ms === null
      ? ''
      : ` At stake: ${msOf(at_stake_ms)}${at_stake_share === null ? '' : ` (${percentOf(at_stake_share)})`}.`;
  const expected =
    gain && gain.expected_ms > 0
      ? ` Expected: ${msOf(gain.expected_ms)} less (${msOf(gain.low_ms)} to ${msOf(gain.high_ms)}).`
      : '';
  const first = evidence.find(({ sql }) => sql !== null);
  return {
    text: `${ended(title)} ${ended(cause)}${stake} Change: ${ended(change.text)}${expected}`,
    sql: first?.sql ?? null,
    from: 'findings',
    rows: first?.row_count ?? null,
  };
}

function ended(text: string): string {
  const sentence = text.trim().replace(/^\p{Ll}/u, (letter) => letter.toUpperCase());
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
}
const ruleTitle = ({ rules }: ExplainResult, id: string): string =>
  rules.find(({ rule }) => rule === id)?.title ?? '';

/** Bars of the waterfall whose ids begin with one of these, of every stage asked for. */
export function barsOf(facts: StoredFacts, beginnings: readonly string[]): StoredPart[] {
  return facts.explained.stages
    .filter(({ kind }) => ofStage(facts, kind))
    .flatMap((stage) => {
      const bars = stage.bars.filter(({ id }) => beginnings.some((one) => id.startsWith(one)));
      const total = bars.reduce((sum, { ms }) => sum + ms, 0);
      const measured = stage.measured_ms.value;
      if (measured === null) return [];
      if (bars.length === 0 || total <= 0)
        return [
          {
            text: `${where(stage)}: no time is lost to it (${msOf(measured)} measured).`,
            sql: null,
            from: 'waterfall',
            rows: 0,
          },
        ];
      return bars
        .filter(({ ms }) => ms > 0)
        .toSorted((a, b) => b.ms - a.ms)
        .slice(0, 4)
        .map(({ label, ms, share, count, sql, parts }) => ({
          text: `${where(stage)}: ${label}, ${msOf(ms)} (${percentOf(share)} of ${msOf(measured)}${count === null ? '' : `, ${Math.round(count)} a step`})${parts[0] ? `; most of it ${parts[0].label}` : ''}.`,
          sql,
          from: 'waterfall',
          rows: 1,
        }));
    });
}

/** The time of each stage, its limit, and its three largest bars beyond the roofline. */
export function stageTimes(facts: StoredFacts): StoredPart[] {
  return facts.explained.stages.filter(({ kind }) => ofStage(facts, kind)).map(stagePart);
}

function stagePart(stage: StageWaterfall): StoredPart {
  const { measured_ms: measured, clean_ms: clean, roofline_ms: roofline, instances, bars } = stage;
  const largest = bars
    .filter(({ id, ms }) => id !== 'roofline' && ms > 0)
    .toSorted((a, b) => b.ms - a.ms)
    .slice(0, 3);
  const parts = [
    measured.value === null ? 'not measured' : `${msOf(measured.value)} (n = ${instances})`,
    clean.value === null || clean.value === measured.value ? null : `${msOf(clean.value)} without a profiler`,
    roofline.value === null
      ? `the roofline is not known: ${roofline.reason.text}`
      : `the roofline allows ${msOf(roofline.value)}`,
  ].filter((one) => one !== null);
  const beyond = largest.map(({ label, ms, share }) => `${label} ${msOf(ms)} (${percentOf(share)})`);
  return {
    text: `${where(stage)}: ${parts.join('; ')}.${beyond.length > 0 ? ` Largest parts: ${beyond.join(', ')}.` : ''}`,
    sql: largest[0]?.sql ?? null,
    from: 'waterfall',
    rows: bars.length,
  };
}

const where = ({ kind, point }: StageWaterfall): string =>
  `${kind.charAt(0).toUpperCase()}${kind.slice(1)}${point === null ? '' : ` at ${point}`}`;

/** How near the roofline each stage is. */
export function rooflineShares(facts: StoredFacts): StoredPart[] {
  return facts.explained.stages
    .filter(({ kind }) => ofStage(facts, kind))
    .flatMap((stage) => {
      const { measured_ms: measured, roofline_ms: roofline, roofs } = stage;
      if (measured.value === null || roofline.value === null) return [];
      return [
        {
          text: `${where(stage)}: the roofline allows ${msOf(roofline.value)} of ${msOf(measured.value)}, ${percentOf(roofline.value / measured.value)}${roofs.length > 0 ? ` (${roofs.join('; ')})` : ''}.`,
          sql: null,
          from: 'waterfall',
          rows: 1,
        },
      ];
    });
}
