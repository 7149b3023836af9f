import type { Diagnosis } from '../../model/documents/profile.js';
import { holds } from '../../model/subjects.js';
import { idleOf } from './answer-idle.js';
import {
  cannot,
  capture,
  instanceOf,
  lacksStage,
  partFrom,
  stagesAsked,
  type StoredFacts,
  type StoredPart,
  told,
  type TopicAnswer,
} from './stored-facts.js';
import { msOf, percentOf } from './words.js';

/** "Is CPU scheduling, kernels or allocation the cost?": the verdict over operators, else busy and idle time of the GPU. */
export async function costVerdict(facts: StoredFacts): Promise<TopicAnswer> {
  const [first, ...rest] = [...(await ofOperators(facts)), ...ofTimeline(facts)];
  if (first) return told(first, [...rest, ...allocator(facts)]);
  return (
    lacksStage(facts) ??
    cannot('What the host, the kernels and the allocator cost was not recorded.', capture.operators)
  );
}

async function ofOperators({ session, question, captures }: StoredFacts): Promise<StoredPart[]> {
  const asked = (stage: string | null) =>
    question.stages.length === 0 || stage === null || question.stages.includes(stage);
  if (holds(session.manifest, 'profile')) {
    const { analyzeProfile } = await import('../../analyze/profile.js');
    const { diagnosis = [] } = (await analyzeProfile(session)).data;
    const isVerdict = ({ id, stage }: Diagnosis) => id === 'verdict' && asked(stage);
    // Decode is most of a run.
    return diagnosis
      .filter(isVerdict)
      .toReversed()
      .map(({ text }) => partFrom('profile diagnosis', text));
  }
  const operators = (await captures()).trace?.data.operators;
  if (!operators?.verdict || !asked(operators.phase)) return [];
  const where = operators.phase === null ? '' : `${operators.phase}: `;
  return [partFrom('trace operators', `${where}${operators.text}`, operators.rows.length)];
}

/** Idle time is the host's: the device had nothing to run. */
function ofTimeline(facts: StoredFacts): StoredPart[] {
  return stagesAsked(facts)
    .filter(({ source, measured_ms: time }) => source === 'trace' && time.value)
    .map((stage) => {
      const { time, busy, idle } = idleOf(stage);
      const [most, least] =
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
        `${most[0]} most of ${instanceOf(stage)}: ${percentOf(most[1] / time)} (${msOf(most[1])} of ${msOf(time)}), ${least[0]} ${percentOf(least[1] / time)}.`,
        stage.bars.length,
      );
    });
}

/** What the rule about the allocator found, or why it could not look. */
const allocator = ({ explained: { rules } }: StoredFacts): StoredPart[] =>
  rules
    .filter(({ rule, outcome }) => rule === 'allocator_churn' && outcome !== 'fired')
    .map(({ why, outcome }) =>
      partFrom('findings', `Allocation: ${outcome === 'not_fired' ? '' : 'not known. '}${why}`, 0),
    );
