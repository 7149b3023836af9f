import { createFrom, type SteppedQuery } from './stepped-query.js';

/** How to make one table of a session's tables and of those made before it. */
export interface MadeTable extends SteppedQuery {
  name: string;
  as: 'view' | 'table';
}

/** Tables that a query may name although no session holds them. */
export interface Makes {
  names: readonly string[];
  /** Definitions of these tables and of all that they need, in their order. */
  make(names: readonly string[]): Promise<MadeTable[]>;
}

/** Makes the tables on one connection. */
export async function makeTables(
  database: { query(sql: string): Promise<unknown> },
  tables: readonly MadeTable[],
): Promise<void> {
  for (const table of tables) {
    if (table.as === 'table') await createFrom(database, table.name, table);
    else await database.query(`CREATE TEMP VIEW ${table.name} AS ${table.select}`);
  }
}
