import { tables } from '../model/tables.js';
import type { Session } from '../session/open.js';
import type { SessionDatabase } from '../session/query.js';

/** The session as if it had only this execution. */
export const withExecution = (session: Session, execution: string): Session => ({
  ...session,
  manifest: {
    ...session.manifest,
    executions: session.manifest.executions.filter(({ execution_id }) => execution_id === execution),
  },
});

/** Table names resolve to temporary views first, so that every format reads these. */
export async function restrictToExecution(database: SessionDatabase, execution: string): Promise<void> {
  for (const [table, { columns }] of Object.entries(tables)) {
    if (!('execution_id' in columns)) continue;
    const [place] = await database.query<{ name: string }>(
      `SELECT concat('"', table_catalog, '"."', table_schema, '"."', table_name, '"') AS name
       FROM information_schema.tables WHERE table_name = '${table}' LIMIT 1`,
    );
    if (place)
      await database.query(
        `CREATE OR REPLACE TEMP VIEW "${table}" AS SELECT * FROM ${place.name} WHERE execution_id = '${execution.replaceAll("'", "''")}'`,
      );
  }
}
