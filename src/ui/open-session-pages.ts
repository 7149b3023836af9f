import { hasRows, isJob } from '../model/subjects.js';
import type { Session } from '../session/open.js';
import type { SessionDatabase } from '../session/query.js';
import type { SessionNamed } from './pages.js';
import type { OpenSession } from './timeline/open-timelines.js';

/** The id, title and pages of a session. */
export function pagesOfSession({ key, session, executions }: OpenSession): SessionNamed {
  const has = (...tables: string[]): boolean => hasRows(session.manifest, ...tables);
  const pages: [path: string, label: string, hasContent: boolean][] = [
    ['', 'Overview', true],
    ['/timeline', 'Timeline', executions.length > 0],
    ['/kernels', 'Kernels', has('kernels', 'counters')],
    ['/operators', 'Operators', has('ops')],
    ['/gemms', 'GEMMs', has('gemms') || (has('ops') && has('kernels'))],
    ['/ranks', 'Ranks', has('collectives') && isJob(session.manifest)],
    ['/requests', 'Requests', has('requests')],
    ['/memory', 'Memory', has('memory', 'telemetry')],
    ['/sql', 'SQL', true],
  ];
  return {
    key,
    id: session.id,
    title: session.user.name ?? session.manifest.title,
    pages: pages.flatMap(([path, label, hasContent]) => (hasContent ? [{ path, label }] : [])),
  };
}

/** Runs a query on a session's database and closes the connection. */
export async function withDatabase<T>(
  session: Session,
  use: (database: SessionDatabase) => Promise<T>,
): Promise<T> {
  const database = await session.connect();
  try {
    return await use(database);
  } finally {
    await database.close();
  }
}
