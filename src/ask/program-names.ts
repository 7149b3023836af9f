import { type TableName, tables } from '../model/tables.js';
import type { Session } from '../session/open.js';
import { numbersIn } from './written-numbers.js';

/** Columns with texts chosen by programs and files. */
const nameColumns = new Set(['name', 'short_name', 'raw_name']);
/** Maximum names, more than any program has; a name beyond it could only make a number look verified. */
const maxNames = 5000;

/**
 * Names that contain numbers: a kernel or a range may be called "takes 42 ms", and our sentences quote names. Longest first, so that a name
 * inside another one is removed with it.
 */
export async function programNames({ manifest, user, connect }: Session): Promise<string[]> {
  const texts = [manifest.title, user.name ?? ''];
  const filled = Object.entries(manifest.tables)
    .filter(([, files]) => files.some(({ rows }) => rows > 0))
    .map(([name]) => name);
  const parts = filled.flatMap((table) =>
    Object.keys(tables[table as TableName]?.columns ?? {})
      .filter((column) => nameColumns.has(column))
      .map((column) => `SELECT DISTINCT "${column}" AS name FROM "${table}"`),
  );
  if (parts.length > 0) {
    const database = await connect();
    try {
      const rows = await database.query<{ name: string }>(
        `SELECT DISTINCT name FROM (${parts.join(' UNION ALL ')})
         WHERE regexp_matches(name, '(^|[^A-Za-z0-9_.])[0-9]') ORDER BY length(name) DESC LIMIT ${maxNames}`,
      );
      texts.push(...rows.map(({ name }) => name));
    } finally {
      await database.close();
    }
  }
  return texts.filter((name) => numbersIn(name).length > 0).toSorted((a, b) => b.length - a.length);
}
