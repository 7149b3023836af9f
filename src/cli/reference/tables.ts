import { describedTables } from '../../session/table-schema.js';
import { code, type Page, page, table } from './markdown.js';

/** Whether a derived table has the columns of a recorded one, and its rows of one rank, device or phase. */
const isSelection = (name: string): boolean => /^(rank|phase)_(?!of$)/.test(name);

export function tablesPage(): Page {
  const all = describedTables();
  const tableSection = ({ name, doc, columns }: (typeof all)[number]): string => {
    const rows = columns.map((column) => [code(column.name), column.type, column.doc]);
    return `### ${code(name)}\n\n${doc}\n\n${table(['column', 'type', 'meaning'], rows)}`;
  };
  const derived = all.filter((describedTable) => describedTable.derived);
  return page(
    'tables.md',
    'Tables',
    'Every session has the same tables, as Parquet files below `tables/` and in `inferscope sql`. Times are BIGINT nanoseconds since `started_at` of the session. Values that were not measured are NULL, never 0. Do not sum over `execution_id`: one workload may have a clean and a profiled run. A `correlation` is unique only together with `capture_id` and `pid`.',
    '## Recorded tables',
    ...all.filter((describedTable) => !describedTable.derived).map(tableSection),
    '## Derived tables: the SQL library',
    'Bars and findings are queries over these tables. `inferscope sql` builds one when a query uses it: those of collectives for all ranks, the others from a timeline, for one rank and one device of one capture (`--rank`, `--device`).',
    table(
      ['table', 'rows'],
      derived.filter(({ name }) => isSelection(name)).map(({ name, doc }) => [code(name), doc]),
    ),
    ...derived.filter(({ name }) => !isSelection(name)).map(tableSection),
  );
}
