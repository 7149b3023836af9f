import { InferscopeError } from '../../model/errors.js';
import type { Figure } from '../../model/figure.js';
import { gibOf, overlap, percentOf, type StoredFacts, type StoredPart } from './stored-part.js';

const has = ({ session }: StoredFacts, kind: string): boolean =>
  session.manifest.artifacts.some((artifact) => artifact.kind === kind);

/** Questions that a benchmark answers itself: knee, scaling, variance, variants, what prompt and output cost. */
export async function benchAnswers(facts: StoredFacts): Promise<StoredPart[]> {
  if (!has(facts, 'bench-plan')) return [];
  const { analyzeBench } = await import('../../analyze/bench/bench.js');
  const { variants, answers } = (await analyzeBench(facts.session)).data;
  const all = [
    ...variants.flatMap(({ label, answers: own }) =>
      own.map((answer) => ({ answer, label: variants.length > 1 ? `${label}: ` : '' })),
    ),
    ...answers.map((answer) => ({ answer, label: '' })),
  ];
  const { tokens } = facts.question;
  return all
    .map((one) => ({
      ...one,
      score:
        3 * overlap(tokens, one.answer.id.replaceAll('_', ' ')) +
        2 * overlap(tokens, one.answer.question) +
        overlap(tokens, one.answer.answer),
    }))
    .filter(({ score }) => score >= 2)
    .toSorted((a, b) => b.score - a.score)
    .slice(0, 3)
    .map(({ answer, label }) => ({
      text: `${label}${answer.answer}`,
      sql: null,
      from: `bench answer ${answer.id}`,
      rows: Object.keys(answer.figures).length,
    }));
}

/** What took the memory, of a session of `memory` or `profile`. */
export async function memoryComponents(facts: StoredFacts): Promise<StoredPart[]> {
  const parts = await componentsOf(facts);
  if (parts.length === 0) return [];
  const list = parts
    .toSorted((a, b) => b.bytes - a.bytes)
    .map(({ component, bytes }) => `- ${component.replaceAll('_', ' ')}: ${gibOf(bytes)}`);
  return [
    {
      text: `Memory at the peak by component:\n${list.join('\n')}`,
      sql: null,
      from: 'memory profile',
      rows: list.length,
    },
  ];
}

async function componentsOf(facts: StoredFacts): Promise<{ component: string; bytes: number }[]> {
  if (has(facts, 'memory-plan')) {
    const { analyzeMemory } = await import('../../analyze/memory-profile/memory.js');
    return (await analyzeMemory(facts.session)).data.profile.memory_breakdown.components;
  }
  if (facts.session.manifest.kind !== 'profile') return [];
  const { analyzeProfile } = await import('../../analyze/profile.js');
  return (await analyzeProfile(facts.session)).data.memory?.breakdown ?? [];
}

/** MFU and MBU of the stages, or why there is none. */
export async function utilizations(facts: StoredFacts): Promise<StoredPart[]> {
  const { session, question } = facts;
  const of = (kind: string) => question.stages.length === 0 || question.stages.includes(kind);
  if (session.manifest.kind === 'profile') {
    const { analyzeProfile } = await import('../../analyze/profile.js');
    const { stages } = (await analyzeProfile(session)).data;
    return stages.filter(({ kind }) => of(kind)).map(({ kind, mfu, mbu }) => part(`${kind}`, mfu, mbu));
  }
  const { analyzeUtilization } = await import('../../analyze/utilization/utilization.js');
  const found = await analyzeUtilization(session).catch((error: unknown) => {
    // A session without prefill and decode has none.
    if (error instanceof InferscopeError) return null;
    throw error;
  });
  return (found?.data.stages ?? [])
    .filter(({ kind }) => of(kind))
    .slice(0, 6)
    .map(({ kind, mfu, mbu, batch_size: batch, point }) =>
      part([kind, point ?? (batch === null ? '' : `batch ${batch}`)].filter(Boolean).join(' at '), mfu, mbu),
    );
}

function part(where: string, mfu: Figure, mbu: Figure): StoredPart {
  const told = (name: string, figure: Figure) =>
    figure.value === null
      ? `${name} is not known (${figure.reason.text})`
      : `${name} ${percentOf(figure.value)}`;
  return {
    text: `${where}: ${told('MFU', mfu)}, ${told('MBU', mbu)}.`,
    sql: null,
    from: 'utilization',
    rows: 1,
  };
}
