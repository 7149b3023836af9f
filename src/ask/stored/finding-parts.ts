import { isAmong } from '../../model/bars.js';
import { barCountNoun } from '../../vocabulary/bars.js';
import { explainedBars, headlineTime, isProfiled } from '../../model/headline-time.js';
import { expectedWords } from '../../advice/explain/sentences.js';
import type { ExplainResult, Finding, StageWaterfall } from '../../model/documents/explain.js';
import { instanceOf, type StoredFacts, type StoredPart } from './stored-facts.js';
import { asSentence, overlap } from './words.js';
import { formatMs, formatPercent, roundMeanCount, plural } from '../../vocabulary/format.js';
import { capitalize, withoutEnd } from '../../vocabulary/sentence.js';

/** Whether a stage is one that the question is about; a question about requests is about all stages. */
export function isOnStage({ question }: StoredFacts, stage: string | null): boolean {
  const named = question.stages.filter((kind) => kind !== 'request');
  return named.length === 0 || stage === null || named.includes(stage);
}

/** A finding in one or two sentences: what it is and the time it affects. */
export function findingText({
  title,
  at_stake_ms: ms,
  at_stake_share: share,
  evidence,
}: Finding): StoredPart {
  const stake =
    ms === null ? '' : ` Affected: ${formatMs(ms)}${share === null ? '' : ` (${formatPercent(share)})`}.`;
  const first = evidence.find(({ sql }) => sql !== null);
  return {
    text: `${asSentence(title)}${stake}`,
    sql: first?.sql ?? null,
    from: 'findings',
    rows: first?.row_count ?? null,
  };
}

/** The cause, the change and its gain. */
export function changeOf(finding: Finding): StoredPart {
  const { cause, change } = finding;
  return {
    text: `Why: ${asSentence(cause)} Change: ${withoutEnd(change.text)}${expectedWords(finding)}.`,
    sql: null,
    from: 'findings',
    rows: 1,
  };
}

/** Findings that share words with the question in rule, title, bars or cause; the best match first. */
export function matchedFindings(facts: StoredFacts, most = 2): Finding[] {
  const { explained, question } = facts;
  return explained.findings
    .filter(({ stage }) => isOnStage(facts, stage))
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
    .map(({ finding }) => finding);
}

const ruleTitle = ({ rules }: ExplainResult, id: string): string =>
  rules.find(({ rule }) => rule === id)?.title ?? '';

/** Findings about time in the stages of the question; those not hidden by another one first. */
export const changesFound = (facts: StoredFacts): Finding[] =>
  facts.explained.findings
    .filter(({ stage, severity }) => severity !== 'info' && isOnStage(facts, stage))
    .toSorted((a, b) => Number(a.hidden_by !== null) - Number(b.hidden_by !== null));

/** The rule on the question's topic that found nothing, or was not applicable. */
export function silentRule({ explained, question }: StoredFacts): ExplainResult['rules'][number] | null {
  const [best] = explained.rules
    .filter(({ outcome }) => outcome !== 'fired')
    .map((rule) => ({
      rule,
      score: overlap(question.tokens, `${rule.rule.replaceAll('_', ' ')} ${rule.title}`),
    }))
    .filter(({ score }) => score >= 2)
    .toSorted((a, b) => b.score - a.score);
  return best?.rule ?? null;
}

/** The time of a stage, its limit, and its three largest bars above the roofline. */
export function stageText(stage: StageWaterfall): StoredPart {
  const { measured_ms: measured, roofline_ms: roofline } = stage;
  const { bars, profiler } = explainedBars(stage.bars);
  const time = headlineTime(stage);
  const n = (time === measured || time.value === null ? null : time.n) ?? stage.instances;
  const largest = bars
    .filter(({ id, ms }) => id !== 'roofline' && ms > 0)
    .toSorted((a, b) => b.ms - a.ms)
    .slice(0, 3);
  const parts = [
    time.value === null
      ? 'was not measured'
      : profiler && measured.value !== null
        ? `takes ${formatMs(time.value)} (n = ${n}, ${formatMs(measured.value)} under the profiler)`
        : `takes ${formatMs(time.value)}${isProfiled(stage) ? ' under the profiler' : ''} (n = ${n})`,
    roofline.value === null
      ? `the roofline limit is not known: ${withoutEnd(roofline.reason.text)}`
      : `the roofline limit is ${formatMs(roofline.value)}`,
  ];
  const largestTexts = largest.map(
    ({ label, ms, share }) => `${label} ${formatMs(ms)} (${formatPercent(share)})`,
  );
  return {
    text: `${capitalize(instanceOf(stage))} ${parts.join('; ')}.${largestTexts.length > 0 ? ` Largest parts: ${largestTexts.join(', ')}.` : ''}`,
    sql: largest[0]?.sql ?? null,
    from: 'waterfall',
    rows: bars.length,
  };
}

/** Bars with one of these ids, including their parts, largest first. */
export function barTexts(stage: StageWaterfall, names: readonly string[], most = 4): StoredPart[] {
  const { bars } = explainedBars(stage.bars);
  const onCpu = stage.source === 'profile' || stage.source === 'operators';
  return bars
    .filter(({ id, ms }) => ms > 0 && isAmong(id, names))
    .toSorted((a, b) => b.ms - a.ms)
    .slice(0, most)
    .map(({ id, label, ms, share, count, sql, parts }) => ({
      text: `- ${label}: ${formatMs(ms)} (${formatPercent(share)} of ${instanceOf(stage)}${count === null || count === 0 ? '' : `, ${plural(roundMeanCount(count), ...barCountNoun(id, onCpu))}`})${parts[0] ? `; mostly ${parts[0].label}` : ''}.`,
      sql,
      from: 'waterfall',
      rows: 1,
    }));
}

/** "CPU-bound host: not found. Decode: …": titles are singular and plural. */
export const notFound = ({ title, why }: ExplainResult['rules'][number]): string =>
  `${title}: not found. ${asSentence(withoutEnd(why))}`;
