import { onCpu, remoteDevice } from '../../facts/bench/machine.js';
import { isProfiled } from '../../model/headline-time.js';
import { ourStatistic } from '../../model/result-statistics.js';
import { hasSubject, isJob } from '../../model/subjects.js';
import { pointLabel } from '../../vocabulary/bench.js';
import { formatNumber, formatQuantity, plural } from '../../vocabulary/format.js';
import { loadLabel } from '../../vocabulary/loads.js';
import { decodeRates } from './answer-time.js';
import { importedPoints } from './answer-requests.js';
import {
  capture,
  known,
  notKnown,
  orNull,
  partFrom,
  type StoredFacts,
  type TopicAnswer,
} from './stored-facts.js';

/** A measured rate of output tokens, and where it was measured. */
interface Rate {
  tokensPerSecond: number;
  where: string;
  from: string;
}

const maxRates = 5;

/**
 * "What does a million tokens cost at $2 per GPU hour?": the time of the GPUs per million output tokens, times the price in the question.
 * The highest rate first, since it is the cheapest.
 */
export async function tokenCost(facts: StoredFacts): Promise<TopicAnswer> {
  const { manifest } = facts.session;
  if (isJob(manifest) && manifest.workload?.tensor_parallel_size === 1)
    return notKnown('How the ranks share the tokens was not recorded, so their cost is not known.', null);
  const rates = (await ratesOf(facts)).toSorted((a, b) => b.tokensPerSecond - a.tokensPerSecond);
  if (rates.length === 0)
    return notKnown('No rate of output tokens was measured, so their cost is not known.', capture.bench);
  const price = priceOf(facts.question.text);
  const machine = machineOf(facts);
  const [direct, ...others] = rates.slice(0, maxRates).map(({ tokensPerSecond, where, from }, index) => {
    const onGpus = machine.count > 1 ? ` on ${machine.count} GPUs` : '';
    const cost = `One million output tokens ${costWords(tokensPerSecond, machine, price)} (${where}: ${formatQuantity(tokensPerSecond, 'tok/s')}${onGpus}).`;
    return partFrom(from, index === 0 && price === null ? `${cost} ${howToAsk}` : cost);
  });
  return known(direct!, others);
}

const howToAsk =
  'Times the price of an hour this is their cost: "what do a million tokens cost at 2.50 USD per hour?".';

interface Machine {
  /** "GPU hour", "server hour" or "machine hour". */
  hour: string;
  /** Number of GPUs in use. */
  count: number;
}

function machineOf({ session: { manifest } }: StoredFacts): Machine {
  const { workload } = manifest;
  // Neither a server nor a result file says on how many GPUs it ran.
  if (workload ? workload.device === remoteDevice : hasSubject(manifest, 'results'))
    return { hour: 'server hour', count: 1 };
  if (workload && onCpu(workload)) return { hour: 'machine hour', count: 1 };
  return { hour: 'GPU hour', count: workload?.tensor_parallel_size ?? 1 };
}

function costWords(tokensPerSecond: number, { hour, count }: Machine, price: Price | null): string {
  const hours = (count * 1e6) / tokensPerSecond / 3600;
  const hourText = formatNumber(hours);
  const time = `${hourText} ${hourText === '1' ? hour : `${hour}s`}`;
  if (price === null) return `take ${time}`;
  return `cost ${price.inCurrency(formatNumber(hours * Number(price.amount)))}: ${time} at ${price.inCurrency(price.amount)}`;
}

/** A price per hour, as typed. */
interface Price {
  amount: string;
  inCurrency(amount: string): string;
}

// In double quotes a shell replaces "$2.50" by ".50", which is not taken for a price.
const pricePattern =
  /([$€£]?)\s*(?<![\d.])(\d+(?:\.\d+)?)\s*(usd|eur|gbp|dollars?|euros?|pounds?|[$€£])?\s*(?:\/|per|an|a|for an|each)\s*(?:gpu|card|machine|server)?[\s-]*h(?:(?:ou)?r)?\b/i;

/** "$2.50 per GPU hour", "2 EUR/h"; null without a price. */
export function priceOf(question: string): Price | null {
  const [, symbol = '', amount, word = ''] = pricePattern.exec(question) ?? [];
  if (amount === undefined) return null;
  return { amount, inCurrency: (number) => `${symbol}${number}${word === '' ? '' : ` ${word}`}` };
}

async function ratesOf(facts: StoredFacts): Promise<Rate[]> {
  const { manifest } = facts.session;
  if (hasSubject(manifest, 'load')) return loadRates(facts);
  if (hasSubject(manifest, 'bench')) return benchRates(facts);
  if (hasSubject(manifest, 'results')) return importedRates(facts);
  return stepRates(facts);
}

async function loadRates({ session }: StoredFacts): Promise<Rate[]> {
  const { analyzeServing } = await import('../../facts/serving/serving.js');
  const serving = await orNull(() => analyzeServing(session));
  return (serving?.data.points ?? []).flatMap(({ load, throughput }) =>
    rateOf(throughput.output_tokens_per_s.value, loadLabel(load), 'serving'),
  );
}

async function benchRates({ session }: StoredFacts): Promise<Rate[]> {
  const { analyzeBench } = await import('../../facts/bench/bench.js');
  const { variants } = (await analyzeBench(session)).data;
  return variants.flatMap(({ label, points }) =>
    points.flatMap(({ point, throughput }) =>
      rateOf(
        throughput.output_tokens_per_s.value,
        `${variants.length > 1 ? `${label}, ` : ''}${pointLabel(point)}`,
        'bench',
      ),
    ),
  );
}

async function importedRates(facts: StoredFacts): Promise<Rate[]> {
  return (await importedPoints(facts)).flatMap(({ label, point }) =>
    rateOf(ourStatistic(point, 'output_throughput', 'mean')?.value ?? null, label, 'results'),
  );
}

/** Decode steps alone: prompts are not included. */
const stepRates = (facts: StoredFacts): Rate[] =>
  decodeRates(facts).flatMap(({ tokensPerSecond, sequences, stage }) => {
    const profiled = isProfiled(stage) ? ' under the profiler' : '';
    const where = `decode of ${plural(sequences, 'sequence')}${profiled}, without the prompt`;
    return rateOf(tokensPerSecond, where, 'waterfall');
  });

const rateOf = (tokensPerSecond: number | null, where: string, from: string): Rate[] =>
  tokensPerSecond ? [{ tokensPerSecond, where, from }] : [];
