import type { BenchmarkPoint } from '../../model/documents/results.js';
import type { ServingPoint } from '../../model/documents/serving.js';
import { ourStatistic, requestCounts } from '../../model/result-statistics.js';
import { hasSubject } from '../../model/subjects.js';
import { formatQuantity, plural } from '../../vocabulary/format.js';
import { loadLabel } from '../../vocabulary/loads.js';
import { benchAnswers } from './answer-bench.js';
import { timeOfStage } from './answer-time.js';
import { latencyIn, latencyNames, type RequestLatency } from './latency-in.js';
import {
  capture,
  known,
  notKnown,
  orNull,
  partFrom,
  type StoredFacts,
  type StoredPart,
  type TopicAnswer,
} from './stored-facts.js';

/** Latencies and rates of requests, goodput, queues; null for questions about other things. */
export async function answerRequests(facts: StoredFacts): Promise<TopicAnswer | null> {
  const answers = (await benchAnswers(facts)) ?? (await importedAnswers(facts));
  if (answers) return answers;
  const { text } = facts.question;
  // A program without requests has the times of its steps.
  const latency = latencyIn(text);
  if (latency !== null && latency !== 'e2e' && facts.explained.stages.length > 0) return timeOfStage(facts);
  if (
    !/\bp9\d\b|\bgoodput\b|\bslo\b|\bqueue\w*|\bsaturat\w*|\bconcurren\w*|\busers\b|\brequests? rate\b/i.test(
      text,
    )
  )
    return null;
  return notKnown(
    'The session has no load-test requests, so percentiles, queues and goodput are not available.',
    capture.serve,
  );
}

interface LabeledPoint {
  label: string;
  point: BenchmarkPoint;
}

/** Load points of imported results, each named by its tool if there are several; empty without results. */
export async function importedPoints({ session }: StoredFacts): Promise<LabeledPoint[]> {
  if (!hasSubject(session.manifest, 'results')) return [];
  const { analyzeResults } = await import('../../facts/benchmark-results/results.js');
  const { captures } = (await analyzeResults(session)).data;
  return captures.flatMap(({ tool, points }) =>
    points.map((point) => ({
      label: [captures.length > 1 ? tool.name : '', point.label].filter(Boolean).join(': '),
      point,
    })),
  );
}

/** The points of a load that the question names by its number; all if it names none. */
function askedPoints(points: readonly LabeledPoint[], text: string): readonly LabeledPoint[] {
  const numbersOf = (words: string): string[] => [...(words.match(/(?<![\w.])\d+(?:\.\d+)?/g) ?? [])];
  const numbers = numbersOf(text);
  const asked = points.filter(({ label }) => numbersOf(label).some((number) => numbers.includes(number)));
  return asked.length > 0 ? asked : points;
}

/** The latency in the question, else the rates, of each load point. */
export async function importedAnswers(facts: StoredFacts): Promise<TopicAnswer | null> {
  const { text } = facts.question;
  const latency = latencyIn(text);
  const points = askedPoints(await importedPoints(facts), text);
  const parts = points.flatMap(({ label, point }) => {
    const value = latency === null ? ratesOf(point) : latencyOf(point, latency);
    const what = latency === null ? 'throughput' : latencyNames[latency];
    return value === null ? [] : [partFrom('results', `${what} at ${label}: ${value}.`)];
  });
  if (parts[0]) return known(parts[0], parts.slice(1));
  if (points.length === 0) return null;
  return notKnown(
    `The imported results have no ${latency === null ? 'output rate' : latencyNames[latency]} by the definition of inferscope; inferscope report lists the metrics of the tool.`,
    capture.serve,
  );
}

/** "44.6 ms at p50, 48.3 ms at p99 (n = 8)", the mean if the file has no percentiles. */
function latencyOf(point: BenchmarkPoint, latency: RequestLatency): string | null {
  const unit = point.metrics.find(({ name, same_definition: same }) => same && name === latency)?.unit ?? '';
  const [p50, p99, mean] = (['p50', 'p99', 'mean'] as const).map((id) => ourStatistic(point, latency, id));
  const values = [
    ...(p50 || p99 ? [] : mean ? [`${formatQuantity(mean.value, unit)} on average`] : []),
    ...(p50 ? [`${formatQuantity(p50.value, unit)} at p50`] : []),
    ...(p99 ? [`${formatQuantity(p99.value, unit)} at p99`] : []),
  ];
  const n = (p50 ?? p99 ?? mean)?.n ?? null;
  return values.length === 0 ? null : `${values.join(', ')}${n === null ? '' : ` (n = ${n})`}`;
}

function ratesOf(point: BenchmarkPoint): string | null {
  const output = ourStatistic(point, 'output_throughput', 'mean');
  const requests = ourStatistic(point, 'request_throughput', 'mean');
  const rates = [
    ...(output ? [`output ${formatQuantity(output.value, 'tok/s')}`] : []),
    ...(requests ? [formatQuantity(requests.value, 'req/s')] : []),
  ];
  return rates.length === 0 ? null : rates.join(', ');
}

/** "How many requests failed?": of each load, those that failed first. */
export async function failedRequests(facts: StoredFacts): Promise<TopicAnswer> {
  const { session } = facts;
  const counts = hasSubject(session.manifest, 'load') ? await loadCounts(facts) : await importedCounts(facts);
  if (counts.length === 0)
    return notKnown(
      'How many requests failed is not known: the session does not record failed requests.',
      capture.serve,
    );
  const failures = counts.filter(({ failed }) => failed > 0);
  const total = counts.reduce((sum, { all }) => sum + all, 0);
  const direct = (text: string): StoredPart => partFrom(counts[0]!.from, text, counts.length);
  if (failures.length === 0) return known(direct(`None of ${plural(total, 'request')} failed.`));
  const totalFailed = failures.reduce((sum, { failed }) => sum + failed, 0);
  const parts = failures.map(({ label, failed, all, why, from }) =>
    partFrom(from, `At ${label}: ${failed} of ${plural(all, 'request')} failed${why}.`),
  );
  // One load says it all.
  if (counts.length === 1) return known(parts[0]!);
  return known(direct(`${totalFailed} of ${plural(total, 'request')} failed.`), parts);
}

interface RequestCount {
  label: string;
  failed: number;
  all: number;
  /** ": 3 timeouts"; empty if not known. */
  why: string;
  from: string;
}

async function loadCounts({ session }: StoredFacts): Promise<RequestCount[]> {
  const { analyzeServing } = await import('../../facts/serving/serving.js');
  const serving = await orNull(() => analyzeServing(session));
  return (serving?.data.points ?? []).map(
    ({ load, requests: { failed, measured, failures } }: ServingPoint) => ({
      label: loadLabel(load),
      failed,
      all: measured,
      why:
        failures.length === 0
          ? ''
          : `: ${failures.map(({ kind, count }) => `${count} ${kind.replaceAll('_', ' ')}`).join(', ')}`,
      from: 'serving',
    }),
  );
}

async function importedCounts(facts: StoredFacts): Promise<RequestCount[]> {
  return (await importedPoints(facts)).flatMap(({ label, point }) => {
    const requests = requestCounts(point);
    if (requests === null || requests.failed === null) return [];
    const { ok, failed } = requests;
    return [{ label, failed, all: ok + failed, why: '', from: 'results' }];
  });
}
