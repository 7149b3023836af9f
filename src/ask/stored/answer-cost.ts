import { isKernelBar, isRuntimeBar } from '../../model/bars.js';
import type { StageWaterfall } from '../../model/documents/explain.js';
import { barShare } from '../../model/figure.js';
import { withheldReasons } from '../../model/withheld.js';
import { hasSubject } from '../../model/subjects.js';
import { idleOf } from './answer-idle.js';
import {
  notKnown,
  capture,
  instanceOf,
  lacksStage,
  partFrom,
  questionStages,
  type StoredFacts,
  type StoredPart,
  known,
  type TopicAnswer,
} from './stored-facts.js';
import { formatMs, formatPercent } from '../../vocabulary/format.js';

/** "Is CPU scheduling, kernels or allocation the cost?": a verdict from operators, else busy and idle time of the GPU. */
export async function costVerdict(facts: StoredFacts): Promise<TopicAnswer> {
  const [first, ...rest] = [...(await operatorCosts(facts)), ...timelineCosts(facts)];
  if (first) return known(first, [...rest, ...allocator(facts)]);
  return (
    lacksStage(facts) ??
    notKnown('The cost of host, kernels and allocator was not recorded.', capture.operators)
  );
}

async function operatorCosts(facts: StoredFacts): Promise<StoredPart[]> {
  const { session, question, captures } = facts;
  if (hasSubject(session.manifest, 'profile')) return engineCosts(facts);
  const isInQuestion = (stage: string | null) =>
    question.stages.length === 0 || stage === null || question.stages.includes(stage);
  const operators = (await captures()).trace?.data.operators;
  if (!operators?.verdict || !isInQuestion(operators.phase)) return [];
  const where = operators.phase === null ? '' : `${operators.phase}: `;
  return [partFrom('trace operators', `${where}${operators.text}`, operators.rows.length)];
}

/** Costs of a stage of the embedded engine by its bars; `unattributed` belongs to none of them. */
const costs = [
  { name: 'kernels', matches: isKernelBar },
  { name: 'scheduling in the runtime', matches: isRuntimeBar },
  {
    name: 'sampling and the loop around it',
    matches: (id: string) => id === 'host.sampling' || id === 'host.loop',
  },
] as const;

function engineCosts({ explained, question }: StoredFacts): StoredPart[] {
  const stages = explained.stages.filter(
    ({ kind, source }) =>
      source === 'profile' &&
      (kind === 'decode' || kind === 'prefill') &&
      (question.stages.length === 0 || question.stages.includes(kind)),
  );
  // Decode first: it is most of a run.
  return stages.toSorted((a, b) => a.kind.localeCompare(b.kind, 'en')).map(engineVerdict);
}

function engineVerdict(stage: StageWaterfall): StoredPart {
  const time = stage.measured_ms.value ?? 0;
  const ranked = costs
    .map(({ name, matches }) => ({
      name,
      ms: stage.bars.filter(({ id }) => matches(id)).reduce((sum, { ms }) => sum + ms, 0),
    }))
    .toSorted((a, b) => b.ms - a.ms);
  const where = `${instanceOf(stage)} of ${formatMs(time)}`;
  if (ranked.some(({ ms }) => barShare(ms, time) === null))
    return partFrom(
      'waterfall',
      `The largest cost in ${where} is not known: ${withheldReasons.passes_differ.text}.`,
      stage.bars.length,
    );
  const unattributed = stage.bars.find(({ id }) => id === 'unattributed')?.ms ?? 0;
  const [first, second] = ranked;
  // Unexplained time could be part of any cost, so it must not be able to change the order.
  const clear = first!.ms >= 0.5 * time && first!.ms - second!.ms > Math.abs(unattributed);
  const parts = [...ranked, { name: 'unattributed', ms: unattributed }].map(
    ({ name, ms }) => `${name} ${formatMs(ms)}`,
  );
  return partFrom(
    'waterfall',
    `In ${where} ${clear ? `most time is in ${first!.name} (${formatPercent(first!.ms / time)})` : 'no single cost dominates'}: ${parts.join(', ')}; allocation has no events in this runtime's trace.`,
    stage.bars.length,
  );
}

/** Idle time counts as host time: the device had nothing to run. */
function timelineCosts(facts: StoredFacts): StoredPart[] {
  return questionStages(facts)
    .filter(({ source, measured_ms: time }) => source === 'trace' && time.value)
    .map((stage) => {
      const { time, busy, idle } = idleOf(stage);
      const [highest, lowest] =
        idle > busy
          ? ([
              ['the host costs', idle],
              ['kernels and copies', busy],
            ] as const)
          : ([
              ['kernels and copies cost', busy],
              ['the host', idle],
            ] as const);
      return partFrom(
        'waterfall',
        `${highest[0]} most of ${instanceOf(stage)}: ${formatPercent(highest[1] / time)} (${formatMs(highest[1])} of ${formatMs(time)}), ${lowest[0]} ${formatPercent(lowest[1] / time)}.`,
        stage.bars.length,
      );
    });
}

/** Why the allocator rule found nothing. */
const allocator = ({ explained: { rules } }: StoredFacts): StoredPart[] =>
  rules
    .filter(({ rule, outcome }) => rule === 'allocator_churn' && outcome !== 'fired')
    .map(({ why, outcome }) =>
      partFrom('findings', `Allocation: ${outcome === 'not_fired' ? '' : 'not known. '}${why}`, 0),
    );
