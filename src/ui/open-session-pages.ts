import type { Child } from 'hono/jsx';
import { hasRows } from '../model/subjects.js';
import type { Session } from '../session/open.js';
import type { SessionDatabase } from '../session/query.js';
import type { Section } from '../views/block.js';
import { blocksPage } from './blocks-page.js';
import type { SessionNamed } from './pages.js';
import { sessionPath } from './session-path.js';
import type { OpenSession } from './timeline/open-timelines.js';

/** A session as its pages name it. */
export const named = ({ key, session }: OpenSession): SessionNamed => ({
  key,
  id: session.id,
  title: session.user.name ?? session.manifest.title,
  hasKernels: hasRows(session.manifest, 'kernels', 'counters'),
  hasCollectives: hasRows(session.manifest, 'collectives'),
});

/** A page of a session from blocks. @param lead above them */
export const pageOfBlocks = (
  one: OpenSession,
  title: string,
  path: string,
  sections: readonly Section[],
  lead?: Child,
): string =>
  blocksPage({
    ...(lead ? { lead } : {}),
    session: named(one),
    title,
    path: sessionPath(one.key, path),
    hasTimeline: one.executions.length > 0,
    sections,
  });

/** Answers from a session's database. */
export async function read<T>(session: Session, ask: (database: SessionDatabase) => Promise<T>): Promise<T> {
  const database = await session.connect();
  try {
    return await ask(database);
  } finally {
    await database.close();
  }
}
