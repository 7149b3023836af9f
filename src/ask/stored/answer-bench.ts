import type { BenchAnswer } from '../../model/documents/bench.js';
import type { Distribution, ServingPoint } from '../../model/documents/serving.js';
import { hasSubject } from '../../model/subjects.js';
import { latencyIn, latencyNames } from './latency-in.js';
import {
  notKnown,
  capture,
  orNull,
  partFrom,
  type StoredFacts,
  known,
  type TopicAnswer,
} from './stored-facts.js';
import { overlap } from './words.js';
import { formatQuantity } from '../../vocabulary/format.js';
import { loadLabel } from '../../vocabulary/loads.js';

/** Phrases that select an answer of a benchmark, by its id; they take precedence over shared words. */
const answerPatterns: readonly (readonly [id: BenchAnswer['id'], pattern: RegExp])[] = [
  ['latency', /\bttft\b|\btpot\b|\bitl\b|\blatenc\w*|\bfirst token\b/i],
  [
    'batch_knee',
    /\bknee\b|\b(?:slow\w*|stop\w*|plateau\w*|flatten\w*)\b.*\bscal\w*|\bscal\w*\b.*\b(?:slow\w*|stop\w*|plateau\w*|flatten\w*)|\b(?:which|what) batch\b|\bstops? growing\b/i,
  ],
  ['utilization', /\butili[sz]\w*/i],
  ['prompt_cost', /\bprompt\b|\binput (?:len\w*|tokens?)\b|\bprefill\b.*\bscal\w*/i],
  ['output_cost', /\boutput (?:len\w*|tokens? cost)|\bthe output\b|\bdecode\b.*\bscal\w*/i],
  ['scaling', /\bscal(?:e|es|ing)\b/i],
  ['idle', /\bidle\b|\bbusy\b/i],
  ['bound', /\b(?:memory|compute)[- ]?bound\b/i],
];

/** Questions that a benchmark answers itself: knee, scaling, variants, cost of prompt and output. */
export async function benchAnswers(facts: StoredFacts): Promise<TopicAnswer | null> {
  if (hasSubject(facts.session.manifest, 'load')) return servingAnswers(facts);
  if (!hasSubject(facts.session.manifest, 'bench')) return null;
  const { analyzeBench } = await import('../../facts/bench/bench.js');
  const { variants, answers } = (await analyzeBench(facts.session)).data;
  const all = [
    ...variants.flatMap(({ label, answers: variantAnswers }) =>
      variantAnswers.map((answer) => ({ answer, label: variants.length > 1 ? `${label}: ` : '' })),
    ),
    ...answers.map((answer) => ({ answer, label: '' })),
  ];
  const { tokens, text } = facts.question;
  const matchingIds = answerPatterns.flatMap(([id, pattern]) => (pattern.test(text) ? [id] : []));
  const parts = all
    .map((entry) => ({
      ...entry,
      score:
        9 * Number(matchingIds.includes(entry.answer.id)) +
        9 * Number(matchingIds[0] === entry.answer.id) +
        3 * overlap(tokens, entry.answer.id.replaceAll('_', ' ')) +
        2 * overlap(tokens, entry.answer.question) +
        overlap(tokens, entry.answer.answer),
    }))
    .filter(({ score }) => score >= 2)
    .toSorted((a, b) => b.score - a.score)
    .slice(0, 3)
    .map(({ answer, label }) =>
      partFrom(`bench answer ${answer.id}`, `${label}${answer.answer}`, Object.keys(answer.figures).length),
    );
  return parts[0] ? known(parts[0], parts.slice(1)) : null;
}

/** Answers about a load test: latencies and rates at the load in the question, else at its last one, and where it saturates. */
async function servingAnswers(facts: StoredFacts): Promise<TopicAnswer | null> {
  const { analyzeServing } = await import('../../facts/serving/serving.js');
  const found = await orNull(() => analyzeServing(facts.session));
  const { text } = facts.question;
  const asked = found?.data.points.find(({ load }) => isAsked(text, load));
  const point = asked ?? found?.data.points.at(-1);
  if (!found || !point) return null;
  const atLoad = asked ? `At ${loadLabel(point.load)}` : `At the last load (${loadLabel(point.load)})`;
  const which = latencyIn(text);
  const saturation = partFrom('serving', found.data.saturation.text);
  if (/\bsaturat\w*|\bscal\w*|\bcapacity\b|\bhow many (?:users|requests)\b/i.test(text))
    return known(saturation);
  const { requests_per_s: rate, output_tokens_per_s: tokens } = point.throughput;
  const throughput = partFrom(
    'serving',
    `${atLoad}: ${tokens.value === null ? 'output not known' : `output ${formatQuantity(tokens.value, 'tok/s')}`}, ${rate.value === null ? 'requests not known' : formatQuantity(rate.value, 'req/s')}.`,
  );
  if (!which) return known(throughput, [saturation]);
  const value = spreadOf(point.latency[which]);
  return known(partFrom('serving', `${atLoad} ${latencyNames[which]} is ${value}.`), [
    throughput,
    saturation,
  ]);
}

/** Whether a question names a load: "at 16 users", "with 2 req/s". */
const isAsked = (text: string, { concurrency, rate_per_s: rate }: ServingPoint['load']): boolean =>
  (rate !== null && new RegExp(`(?<![\\d.])${rate}\\s*(?:req|rps\\b|requests? per)`, 'i').test(text)) ||
  (concurrency !== null &&
    new RegExp(`(?<![\\d.])${concurrency} (?:\\w+ )?(?:users?|clients?|requests?)\\b`, 'i').test(text));

const spreadOf = (distribution: Distribution): string =>
  'p50' in distribution
    ? `${formatQuantity(distribution.p50, distribution.unit)} at p50, ${formatQuantity(distribution.p99, distribution.unit)} at p99 (n = ${distribution.n})`
    : `not known: ${distribution.reason.text}`;

/** "How does output length compare?", "what does twice the prompt cost?", "does batching raise utilization?": from measurements. */
export async function measuredGrowth(facts: StoredFacts): Promise<TopicAnswer | null> {
  const found = hasSubject(facts.session.manifest, 'bench') ? await benchAnswers(facts) : null;
  if (found || hasSubject(facts.session.manifest, 'load')) return found;
  const { text } = facts.question;
  if (/\butili[sz]/i.test(text))
    return notKnown(
      'The effect of a larger batch on utilization is not known: the session measured one batch size.',
      capture.bench,
    );
  return /\boutput\b/i.test(text)
    ? notKnown('How output lengths compare is not known: the session measured one.', capture.sequence)
    : null;
}
