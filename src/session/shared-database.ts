import { type Database, openDatabase } from './database.js';
import { queryRows, type SessionDatabase } from './query.js';
import { scan } from './scan.js';
import { asDamage } from './session-problem.js';
import { createViews, isReadIntoMemory, type SessionTables } from './views.js';

/**
 * Connections to one database over a session's tables. The database is open from the first connection until the last one closes, so that an
 * analysis that uses another one opens no second database. Temporary tables and views are per connection.
 * @param rows of all tables
 */
export function sharedDatabase(source: SessionTables, rows: number): () => Promise<SessionDatabase> {
  let opened: Promise<Database> | null = null;
  let connections = 0;
  const tables = new Map<string, Promise<string>>();
  const release = async (from: Promise<Database>): Promise<void> => {
    connections--;
    if (connections > 0) return;
    opened = null;
    tables.clear();
    await (await from).close();
  };
  return async () => {
    const opening = (opened ??= open(source, rows));
    connections++;
    let connection;
    try {
      connection = await (await opening).instance.connect();
    } catch (error) {
      connections--;
      if (opened === opening) opened = null;
      throw error;
    }
    const query: SessionDatabase['query'] = async (sql, parameters = []) => {
      try {
        return await queryRows(connection, sql, parameters);
      } catch (error) {
        throw asDamage(error, source.id);
      }
    };
    const createTable = async (sql: string): Promise<string> => {
      const table = `made_${tables.size}`;
      await query(`CREATE TABLE ${table} AS ${sql}`);
      return table;
    };
    return {
      query,
      async *scan(sql) {
        try {
          yield* scan(connection, sql);
        } catch (error) {
          throw asDamage(error, source.id);
        }
      },
      once: async (name, key, sql) => {
        const id = `${name} ${key}`;
        const table = tables.get(id) ?? createTable(sql);
        tables.set(id, table);
        await query(`CREATE OR REPLACE TEMP VIEW ${name} AS FROM ${await table}`);
      },
      close: async () => {
        connection.closeSync();
        await release(opening);
      },
    };
  };
}

async function open(source: SessionTables, rows: number): Promise<Database> {
  // For a few thousand rows a second thread costs more than it saves: a sixth of the CPU time of an explanation.
  const database = await openDatabase(isReadIntoMemory(rows) ? { threads: 1 } : {});
  try {
    await createViews(database.connection, [source], { withSessionId: false, rows });
  } catch (error) {
    await database.close();
    throw asDamage(error, source.id);
  }
  return database;
}
