import type { Distribution, ServingPoint } from '../../model/documents/serving.js';
import {
  cannot,
  capture,
  hasArtifact,
  orNull,
  partFrom,
  type StoredFacts,
  told,
  type TopicAnswer,
} from './stored-facts.js';
import { msOf, overlap } from './words.js';

const latencyWords = /\bttft\b|\btpot\b|\bitl\b|\blatenc\w*|\bfirst token\b/i;

/** Questions that a benchmark answers itself: knee, scaling, variants, what prompt and output cost. */
export async function benchAnswers(facts: StoredFacts): Promise<TopicAnswer | null> {
  if (hasArtifact(facts, 'load-plan')) return servingAnswers(facts);
  if (!hasArtifact(facts, 'bench-plan')) return null;
  const { analyzeBench } = await import('../../analyze/bench/bench.js');
  const { variants, answers } = (await analyzeBench(facts.session)).data;
  const all = [
    ...variants.flatMap(({ label, answers: own }) =>
      own.map((answer) => ({ answer, label: variants.length > 1 ? `${label}: ` : '' })),
    ),
    ...answers.map((answer) => ({ answer, label: '' })),
  ];
  const { tokens } = facts.question;
  const parts = all
    .map((one) => ({
      ...one,
      score:
        3 * Number(one.answer.id === 'latency' && latencyWords.test(facts.question.text)) +
        3 * overlap(tokens, one.answer.id.replaceAll('_', ' ')) +
        2 * overlap(tokens, one.answer.question) +
        overlap(tokens, one.answer.answer),
    }))
    .filter(({ score }) => score >= 2)
    .toSorted((a, b) => b.score - a.score)
    .slice(0, 3)
    .map(({ answer, label }) =>
      partFrom(`bench answer ${answer.id}`, `${label}${answer.answer}`, Object.keys(answer.figures).length),
    );
  return parts[0] ? told(parts[0], parts.slice(1)) : null;
}

/** Of a load test: latencies and rates of the heaviest load, and where it saturates. */
async function servingAnswers(facts: StoredFacts): Promise<TopicAnswer | null> {
  const { analyzeServing } = await import('../../analyze/serving/serving.js');
  const found = await orNull(() => analyzeServing(facts.session));
  const point = found?.data.points.at(-1);
  if (!found || !point) return null;
  const { text } = facts.question;
  const which = latencies.find(({ asks }) => asks.test(text));
  const saturation = partFrom('serving', found.data.saturation.text);
  if (/\bsaturat\w*|\bscal\w*|\bcapacity\b|\bhow many (?:users|requests)\b/i.test(text))
    return told(saturation);
  const { requests_per_s: rate, output_tokens_per_s: tokens } = point.throughput;
  const throughput = partFrom(
    'serving',
    `At the last load (${loadOf(point)}): ${tokens.value === null ? 'output not known' : `${tokens.value.toFixed(0)} output tokens/s`}, ${rate.value === null ? 'requests not known' : `${rate.value.toPrecision(3)} requests/s`}.`,
  );
  if (!which) return told(throughput, [saturation]);
  return told(
    partFrom('serving', `At the last load (${loadOf(point)}) ${which.what} is ${spreadOf(which.of(point))}.`),
    [throughput, saturation],
  );
}

const latencies: readonly { asks: RegExp; what: string; of: (point: ServingPoint) => Distribution }[] = [
  { asks: /\bttft\b|\bfirst token\b/i, what: 'TTFT', of: ({ latency }) => latency.ttft },
  { asks: /\btpot\b|\bper (?:output )?token\b/i, what: 'TPOT', of: ({ latency }) => latency.tpot },
  { asks: /\bitl\b|\binter[- ]?token\b/i, what: 'ITL', of: ({ latency }) => latency.itl },
  {
    asks: /\blatenc\w*|\be2e\b|\bend[- ]to[- ]end\b|\bp9\d\b/i,
    what: 'end-to-end latency',
    of: ({ latency }) => latency.e2e,
  },
];

function loadOf({ load, execution_id: id }: ServingPoint): string {
  if (load.rate_per_s !== null) return `${Number(load.rate_per_s.toPrecision(3))} requests/s offered`;
  return load.concurrency === null ? id : `${load.concurrency} users`;
}

const spreadOf = (of: Distribution): string =>
  'p50' in of
    ? `${inUnit(of.p50, of.unit)} in the median, ${inUnit(of.p99, of.unit)} at p99 (n = ${of.n})`
    : `not known: ${of.reason.text}`;

const inUnit = (value: number, unit: string): string =>
  unit === 'ms' ? msOf(value) : unit === 's' ? msOf(1000 * value) : `${Number(value.toPrecision(3))} ${unit}`;

/** Percentiles of requests, goodput, queues: a session without requests does not hold them. */
export async function requestsAsked(facts: StoredFacts): Promise<TopicAnswer | null> {
  const found = await benchAnswers(facts);
  if (
    found ||
    !/\bp9\d\b|\bgoodput\b|\bslo\b|\bqueue\w*|\bsaturat\w*|\bconcurren\w*|\busers\b|\brequests? rate\b/i.test(
      facts.question.text,
    )
  )
    return found;
  return cannot(
    'The session holds no requests of a load: percentiles, queues and goodput are not in it.',
    capture.serve,
  );
}
