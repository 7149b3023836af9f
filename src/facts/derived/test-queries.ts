import { type DerivedTable, derivedTables, isTimelineTable } from '../../model/derived-tables.js';
import { hasRows } from '../../model/subjects.js';
import { makeTables } from '../../session/made-tables.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { definitionsOf } from './queries.js';

/** Tables that a user's query can read: the session's tables, and the derived tables of a timeline. */
export async function userDatabase(session: Session): Promise<SessionDatabase> {
  const database = await session.connect();
  const names = Object.keys(derivedTables) as DerivedTable[];
  const hasTimeline = hasRows(session.manifest, 'kernels', 'ops');
  const found = hasTimeline ? names : names.filter((name) => !isTimelineTable(name));
  await makeTables(database, await definitionsOf(session, found));
  return database;
}
