import { type RecordedTable, shownRowsSql } from '../../facts/derived/relations.js';
import { rankName } from '../../vocabulary/ranks.js';
import type { StoredFacts } from './stored-facts.js';

/** SQL condition of the rows to count, and their name. */
interface ShownRows {
  where: string;
  /** "the whole capture of rank 1". */
  name: string;
}

/** The rows of the report's capture, rank and device; without a timeline, of the capture that has the most. */
export async function shownRows(facts: StoredFacts, table: RecordedTable): Promise<ShownRows> {
  const source = (await facts.captures()).trace?.data.source;
  const name = 'the whole capture';
  if (!source)
    return {
      name,
      where: `(execution_id, capture_id) = (SELECT (execution_id, capture_id) FROM ${table} GROUP BY execution_id, capture_id ORDER BY count(*) DESC, execution_id, capture_id LIMIT 1)`,
    };
  const { focus } = source;
  return {
    name: focus.rank === null ? name : `${name} of ${rankName(focus)}`,
    where: shownRowsSql(table, source),
  };
}
