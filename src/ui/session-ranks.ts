import {
  readCallsByRank,
  type CollectiveKind,
  readCollectiveKinds,
} from '../facts/collectives/calls-by-rank.js';
import { readRankStepTimes } from '../facts/collectives/job-ranks.js';
import { hasRows, isJob } from '../model/subjects.js';
import type { Section } from '../views/block.js';
import { rankStrip } from '../views/rank-strip.js';
import { withDatabase } from './open-session-pages.js';
import { collectiveSection, noRanks } from './ranks-page.js';
import { sessionPath } from './session-path.js';
import { once, type OpenSession } from './timeline/open-timelines.js';

/** @param query operation and bytes of the selected collective; '' selects the one with the most total time */
export async function ranksOfSession(openSession: OpenSession, query: string): Promise<Section[]> {
  const { session } = openSession;
  // NCCL logs number ranks within each communicator, so rows of several communicators must not be mixed.
  if (!hasRows(session.manifest, 'collectives') || !isJob(session.manifest)) return [noRanks];
  const [times, kinds] = await Promise.all([
    once(openSession, 'own times', () => withDatabase(session, readRankStepTimes)),
    once(openSession, 'collectives', () => withDatabase(session, readCollectiveKinds)),
  ]);
  const keyOf = ({ execution_id: execution, operation, bytes }: CollectiveKind): string =>
    `${operation} ${bytes} ${execution}`;
  const chosen =
    kinds.find((kind) => keyOf(kind) === query) ??
    kinds.find(({ execution_id: execution }) => execution === times?.execution) ??
    kinds[0];
  if (!chosen) return [noRanks];
  const waits = await once(openSession, `collective ${keyOf(chosen)}`, () =>
    withDatabase(session, (database) => readCallsByRank(database, chosen)),
  );
  const placeOf = (execution: string, start: number, end: number, room = end - start): string => {
    const parameters = new URLSearchParams({
      execution,
      start: String(start - room),
      end: String(end + room),
      mark: `${start},${end}`,
    });
    return `${sessionPath(openSession.key, '/timeline')}?${parameters}`;
  };
  const rankBlocks =
    times === null
      ? []
      : [
          {
            type: 'text',
            text: 'The own time of a step is its time without exposed communication. The others wait for the rank with the longest.',
          } as const,
          rankStrip(times.steps, (rank, { first, last }) => {
            const [from, to] = [times.spanOf(rank, first), times.spanOf(rank, last)];
            return from && to && placeOf(from.execution, from.start_ns, to.end_ns, 0);
          }),
        ];
  const collective = collectiveSection(waits, {
    kinds,
    chosen,
    linkTo: (kind) =>
      `${sessionPath(openSession.key, '/ranks')}?${new URLSearchParams({ of: keyOf(kind) })}#collective`,
    placeOf,
  });
  return [
    ...(rankBlocks.length > 0 ? [{ id: 'ranks', title: 'Ranks', blocks: rankBlocks }] : []),
    collective,
  ];
}
