import { createFrom, type SteppedQuery } from './stepped-query.js';

/** How to compute one table from a session's tables and from tables computed before it. */
export interface TableDefinition extends SteppedQuery {
  name: string;
  as: 'view' | 'table';
}

/** Tables that a query may use although no session has them. */
export interface DerivedTables {
  names: readonly string[];
  /** Definitions of these tables and of all tables that they need, in order. */
  make(names: readonly string[]): Promise<TableDefinition[]>;
}

/** Creates the tables on one connection. */
export async function makeTables(
  database: { query(sql: string): Promise<unknown> },
  tables: readonly TableDefinition[],
): Promise<void> {
  for (const table of tables) {
    if (table.as === 'table') await createFrom(database, table.name, table);
    else await database.query(`CREATE TEMP VIEW ${table.name} AS ${table.select}`);
  }
}
