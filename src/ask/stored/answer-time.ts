import { nothingFound } from '../../vocabulary/explain-words.js';
import { halfInterval } from '../../model/half-interval.js';
import { headlineTime, isProfiled } from '../../model/headline-time.js';
import { withheldWords } from '../../model/withheld.js';
import { expectedWords } from '../../advice/explain/sentences.js';
import type { StageWaterfall } from '../../model/documents/explain.js';
import { changeOf, changesFound, findingText, stageText } from './finding-parts.js';
import {
  notKnown,
  capture,
  lacksStage,
  partFrom,
  questionStages,
  type StoredFacts,
  known,
  type TopicAnswer,
  instanceOf,
} from './stored-facts.js';
import {
  formatFigureWithSpread,
  formatMs,
  formatPercent,
  plural,
  formatQuantity,
} from '../../vocabulary/format.js';
import { capitalize, withoutEnd } from '../../vocabulary/sentence.js';

/** "Why is decode slow?": the first finding of the stage, then where its time goes. */
export function whySlow(facts: StoredFacts): TopicAnswer {
  const [first] = changesFound(facts);
  const stages = questionStages(facts).slice(0, 2).map(stageText);
  if (first) return known(findingText(first), [changeOf(first), ...stages]);
  if (stages.length === 0) return lacksStage(facts) ?? nothingTimed();
  return known(stages[0]!, [partFrom('findings', noneFound(facts), 0), ...stages.slice(1)]);
}

/** "Where does the time of a decode step go?", "how long does …?" */
export function timeOfStage(facts: StoredFacts): TopicAnswer {
  const stages = questionStages(facts).slice(0, 3).map(stageText);
  const [first] = changesFound(facts);
  if (stages.length === 0) return lacksStage(facts) ?? nothingTimed();
  return known(stages[0]!, [...stages.slice(1), ...(first ? [findingText(first)] : [])]);
}

/** "What should I change first?": the first of the findings, those hidden by others last. */
export function whatToChange(facts: StoredFacts): TopicAnswer {
  const [first, ...rest] = changesFound(facts);
  if (!first) return known(partFrom('findings', noneFound(facts), 0));
  const { change } = first;
  const direct = partFrom('findings', `Change first: ${withoutEnd(change.text)}${expectedWords(first)}.`);
  return known(direct, [
    findingText(first),
    ...rest.slice(0, 2).flatMap((finding) => [findingText(finding), changeOf(finding)]),
  ]);
}

const noneFound = ({ explained }: StoredFacts): string =>
  [nothingFound(explained), withheldWords(explained.withheld) ?? []].flat().join(' ');

const nothingTimed = () => notKnown('The session has no times.', capture.timeline);

/** Why stages without a time have none. */
function notTimed([stage]: readonly StageWaterfall[]): TopicAnswer {
  const time = stage && headlineTime(stage);
  return !time || time.value !== null
    ? nothingTimed()
    : notKnown(
        `The time of ${instanceOf(stage)} is not known: ${withoutEnd(time.reason.text)}.`,
        capture.timeline,
      );
}

/** "What should I capture next?" */
export function whatNext({ explained }: StoredFacts): TopicAnswer {
  const [first, ...rest] = explained.next_steps;
  if (!first)
    return known(partFrom('explain', 'No further capture would refine the results of this session.', 0));
  return known(
    partFrom('explain', `Next: ${first.command}; it ${first.why}.`),
    rest.map(({ command, why }) => partFrom('explain', `- ${command}; it ${why}.`)),
  );
}

/** "How noisy is it?": the interval and spread of the stages' times, and findings that make them doubtful. */
export function spreadOfTimes(facts: StoredFacts): TopicAnswer {
  const parts = questionStages(facts).flatMap((stage) => {
    const stageTime = headlineTime(stage);
    if (stageTime.value === null) return [];
    const n = stageTime.n ?? stage.instances;
    const half = halfInterval(stageTime);
    const text =
      half !== null
        ? `${capitalize(instanceOf(stage))} takes ${formatFigureWithSpread({ ...stageTime, n })}: the interval of its mean is ± ${formatPercent(half / stageTime.value)}${stageTime.sd === undefined ? '' : `, sd ${formatMs(stageTime.sd)}`}.`
        : `${capitalize(instanceOf(stage))} was measured ${n === 1 ? 'once' : `${n} times`} (${formatMs(stageTime.value)}): its spread is not known.`;
    return [partFrom('waterfall', text)];
  });
  const doubts = facts.explained.findings
    .filter(({ rule }) => ['few_repeats', 'throttling', 'another_process', 'benchmark_flags'].includes(rule))
    .map(findingText);
  const [first, ...rest] = parts;
  if (!first) return lacksStage(facts) ?? notTimed(questionStages(facts));
  return known(first, [...rest, ...doubts]);
}

/** "How much does the profiler add?": the same stage with and without it; null if no stage of a timeline has both times. */
export function profilerAdds(facts: StoredFacts): TopicAnswer | null {
  const parts = questionStages(facts).flatMap((stage) => {
    const { measured_ms: under, clean_ms: clean, source } = stage;
    if (source !== 'trace' || under.value === null || clean.value === null) return [];
    const added = under.value - clean.value;
    const times = `${formatMs(under.value)} under it, ${formatMs(clean.value)} without`;
    const text =
      added > 0
        ? `The profiler adds ${formatMs(added)} to ${instanceOf(stage)}: ${times} (${formatPercent(added / clean.value)} more).`
        : `The profiler adds no measurable time to ${instanceOf(stage)}: ${times}.`;
    return [partFrom('waterfall', text)];
  });
  return parts[0] ? known(parts[0], parts.slice(1)) : null;
}

/** A rate of output tokens from the mean time of decode steps. */
export interface DecodeRate {
  tokensPerSecond: number;
  sequences: number;
  stage: StageWaterfall;
}

/** Each group of decode steps with a known time and number of sequences. */
export function decodeRates({ explained, session }: StoredFacts): DecodeRate[] {
  const batch = session.manifest.workload?.batch_size ?? null;
  return explained.stages.flatMap((stage) => {
    const { value: ms } = headlineTime(stage);
    const sequences = stage.new_tokens ?? Number(/^b(\d+)-/.exec(stage.point ?? '')?.[1] ?? batch ?? 0);
    if (stage.kind !== 'decode' || !ms || sequences === 0) return [];
    return [{ tokensPerSecond: (sequences * 1000) / ms, sequences, stage }];
  });
}

/** "How many tokens per second?", from the stages' times. */
export function tokensPerSecond(facts: StoredFacts): TopicAnswer {
  const decode = facts.explained.stages.filter(({ kind }) => kind === 'decode');
  if (decode.length === 0) {
    return notKnown('No decode step is marked, so the token rate is not known.', capture.latency);
  }
  if (decode.every((stage) => headlineTime(stage).value === null)) return notTimed(decode);
  const parts = decodeRates(facts).map(({ tokensPerSecond: rate, sequences, stage }) => {
    const profiled = isProfiled(stage) ? ' under the profiler' : '';
    return partFrom(
      'waterfall',
      `Decode generates ${formatQuantity(rate, 'tok/s')}: ${plural(sequences, 'sequence')}, ${formatMs(headlineTime(stage).value!)} per step${profiled}.`,
    );
  });
  const [first, ...rest] = parts;
  const stages = questionStages(facts).slice(0, 1).map(stageText);
  if (first) return known(first, [...rest.slice(0, 5), ...stages]);
  const why = 'The number of sequences per step is not known, so tokens per second are not known.';
  return notKnown(why, capture.latency, stages);
}
