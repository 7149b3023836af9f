import type { ExplainResult } from '../model/documents/explain.js';
import { derivedOf } from '../facts/derived/queries.js';
import { sessionTables, type Session } from '../session/open.js';
import { runSql } from '../session/sql-run.js';
import type { AllowedData } from './allowable.js';
import type { ToolContext } from './tools/tool.js';

const limits = { timeoutS: 10, maxRows: 200, memoryLimitBytes: 2 ** 30 };

/**
 * The sessions that tools may read, with SQL in a child process.
 * @param sqlChild the built sql-child.js
 * @param salt hides host names in SQL, where rows of one host still join
 */
export function sessionContext(
  sessions: readonly Session[],
  sqlChild: string,
  allowed: ReadonlySet<AllowedData>,
  salt: string,
): ToolContext {
  const tables = sessions.map((session) => ({
    ...sessionTables(session),
    ...(allowed.has('hosts') ? {} : { hostSalt: salt }),
  }));
  const explained = new Map<string, Promise<ExplainResult>>();
  return {
    sessions,
    query: (sql) => runSql(sqlChild, tables, sql, limits, derivedOf(sessions)),
    explain(session) {
      const known = explained.get(session.id) ?? explanationOf(session);
      explained.set(session.id, known);
      return known;
    },
  };
}

async function explanationOf(session: Session): Promise<ExplainResult> {
  const { cachedExplanation } = await import('../advice/explain/explain.js');
  return (await cachedExplanation(session)).data;
}
