import { setModelCommand } from '../../advice/explain/next-steps.js';
import type { WhatIfResult } from '../../model/documents/explain.js';
import { InferscopeError } from '../../model/errors.js';
import { leadOrder } from '../../advice/explain/sentences.js';
import type { RequestedChanges } from './requested-changes.js';
import { changeOf, findingText } from './finding-parts.js';
import {
  notKnown,
  capture,
  instanceOf,
  partFrom,
  type StoredFacts,
  type StoredPart,
  known,
  type TopicAnswer,
} from './stored-facts.js';
import { timePerUnit, unchangedText } from '../../vocabulary/explain-words.js';
import { barWords } from '../../vocabulary/bars.js';
import { formatFactor, formatMs, formatPercent } from '../../vocabulary/format.js';
import { capitalize, withoutEnd } from '../../vocabulary/sentence.js';

type Stage = WhatIfResult['stages'][number];

/** Prediction for a change that was not run, by `explain --what-if`. */
export async function answerPrediction(
  facts: StoredFacts,
  requested: RequestedChanges,
): Promise<TopicAnswer> {
  const predictions: Prediction[] = [];
  const refusals: Refusal[] = requested.unknown.map(({ what }) => ({ why: what, code: null }));
  const { whatIf } = await import('../../advice/what-if/what-if.js');
  for (const changes of requested.alternatives) {
    try {
      const { data } = await whatIf(facts.session, changes);
      const prediction = predictionOf(facts, data, changes);
      if ('why' in prediction) refusals.push(prediction);
      else predictions.push(prediction);
    } catch (error) {
      if (!(error instanceof InferscopeError)) throw error;
      const { what, why } = error.parts;
      refusals.push({ why: `${changes.join(', ')}: ${what}; ${withoutEnd(why)}.`, code: error.code });
    }
  }
  const [first, ...rest] = predictions.map(({ direct }) => direct);
  const why = [...new Set(refusals.map((refusal) => refusal.why))].join(' ');
  if (!first) {
    const hints = facts.explained.findings
      .filter(({ rule }) => rule === 'small_batch_memory_bound' && /speculat/i.test(facts.question.text))
      .flatMap((finding) => [findingText(finding), changeOf(finding)]);
    const codes = new Set(refusals.map(({ code }) => code));
    const fallback = codes.has('no_model')
      ? setModelCommand(facts.session.user.name ?? facts.session.id)
      : codes.has('no_kernel_times')
        ? capture.bench
        : capture.timeline;
    return notKnown(why, requested.unknown[0]?.how ?? fallback, hints);
  }
  // With several predictions the sentences are enough; each names the command that shows its bars.
  const refusalParts = refusals.length > 0 ? [partFrom('what-if', why, 0)] : [];
  const evidence = predictions.flatMap(({ others, bars, assumed }) => [
    ...others,
    ...(rest.length > 0 ? [] : bars),
    ...assumed,
  ]);
  return known(first, [...rest, ...evidence, ...refusalParts]);
}

/** Why a change is not predicted; `code` is that of the missing figure or the error. */
interface Refusal {
  why: string;
  code: string | null;
}

interface Prediction {
  direct: StoredPart;
  /** Sentences about further stages. */
  others: StoredPart[];
  bars: StoredPart[];
  assumed: StoredPart[];
}

/** The sentence about the stage in the question, or the first stage; or why there is none. */
function predictionOf(
  { question, session }: StoredFacts,
  { stages }: WhatIfResult,
  changes: readonly string[],
): Prediction | Refusal {
  const rank = ({ kind }: Stage) => leadOrder.findIndex((lead) => lead === kind);
  const ordered = stages.toSorted((a, b) => rank(a) - rank(b));
  const matching = ordered.filter(
    ({ kind }) => question.stages.length === 0 || question.stages.includes(kind),
  );
  const word = changes.join(', ');
  const reasons = matching.flatMap(({ after_ms: after }) => (after.value === null ? [after.reason] : []));
  const [first, ...rest] = matching.filter(({ after_ms: after }) => after.value !== null);
  if (!first) {
    const { code, text } = reasons[0] ?? { code: null, text: 'the session has no stage to predict from' };
    return { why: `${word} cannot be predicted: ${withoutEnd(text)}.`, code };
  }
  const from = 'what-if';
  const { id, user } = session;
  const command = `inferscope explain ${user.name ?? id} --what-if ${changes.map(quoted).join(',')}`;
  const part = (text: string, rows = 1) => partFrom(from, text, rows, command);
  const minChangeMs = 0.002 * (first.before_ms.value ?? 0);
  return {
    direct: part(
      `${asksForGain(question.text) ? verdict(first) : ''}${sentence(first, word)}`,
      first.bars.length,
    ),
    others: rest.slice(0, 2).map((stage) => part(sentence(stage, word), stage.bars.length)),
    bars: first.bars
      .filter(({ before_ms: before, after_ms: after }) => Math.abs(after - before) >= minChangeMs)
      .toSorted((a, b) => Math.abs(b.after_ms - b.before_ms) - Math.abs(a.after_ms - a.before_ms))
      .slice(0, 3)
      .map(({ id, before_ms: before, after_ms: after, explanation }) =>
        part(`- ${barWords(id).label}: ${formatMs(before)} → ${formatMs(after)}: ${explanation}`),
      ),
    assumed: [
      ...first.unchanged.map(({ change, why }) => part(unchangedText(change, why))),
      ...(first.assumptions.length > 0
        ? [part(`Assumed: ${first.assumptions.map(withoutEnd).join('; ')}.`)]
        : []),
    ],
  };
}

const quoted = (change: string): string => (/\s/.test(change) ? `"${change}"` : change);

/** Whether it is a yes-or-no question about a gain. */
const asksForGain = (text: string): boolean =>
  /\b(help\w*|worth|benefit\w*|should|faster|improv\w*|sav(?:e|es|ing)|speed|gain\w*|pay off|good idea)\b/i.test(
    text,
  ) && !/^\W*(?:how|what|which)\b/i.test(text);

function verdict(stage: Stage): string {
  const ratio = gainOf(stage);
  const { before_ms: before, after_ms: after } = stage;
  const mayBeLonger =
    timePerUnit(stage) === null &&
    after.value !== null &&
    before.value !== null &&
    (after.ci95?.[1] ?? 0) > before.value;
  if (ratio > 1.02) return mayBeLonger ? 'Probably: ' : 'Yes: ';
  return ratio < 0.98 ? 'No, it would take longer: ' : 'Hardly: ';
}

function gainOf(stage: Stage): number {
  const { from, to } = timePerUnit(stage) ?? {
    from: stage.before_ms.value ?? 0,
    to: stage.after_ms.value ?? 1,
  };
  return from / to;
}

function sentence(stage: Stage, word: string): string {
  const { before_ms: before, after_ms: after } = stage;
  if (after.value === null)
    return `${capitalize(instanceOf(stage))}: not known: ${withoutEnd(after.reason.text)}.`;
  const range = after.ci95 ? ` (${formatMs(after.ci95[0])} to ${formatMs(after.ci95[1])})` : '';
  const beforeMs = before.value ?? 0;
  const share = beforeMs > 0 ? after.value / beforeMs - 1 : 0;
  const change =
    Math.abs(share) < 0.005
      ? 'no change'
      : `${formatPercent(Math.abs(share))} ${share < 0 ? 'less' : 'more'}`;
  const each = timePerUnit(stage);
  const perUnit =
    each && each.to > 0
      ? `; per ${each.unit} ${formatMs(each.from)} → ${formatMs(each.to)}, ${formatFactor(each.from / each.to)} the throughput`
      : '';
  return `with ${word} ${instanceOf(stage)} is expected to take ${formatMs(after.value)}${range} instead of ${formatMs(beforeMs)}, ${change}${perUnit}.`;
}
