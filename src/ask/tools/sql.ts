import { z } from 'zod';
import { askTool } from './tool.js';

/** Maximum characters of a cell; longer texts are names with all template arguments. */
const cellLength = 160;

export const sqlTool = askTool({
  name: 'sql',
  description:
    "One read-only SELECT (DuckDB) over the session's tables; at most 200 rows and 10 seconds. Every table begins with session_id. Times are in ns: name a result's unit in its column, e.g. sum(dur_ns) / 1e6 AS total_ms. Aggregate; filter by execution_id, or several executions of one workload are added up.",
  input: z.object({ query: z.string().max(20_000).describe('one SELECT statement') }),
  inputLine: ({ query }) => query,
  async run({ query }, context) {
    const { columns, rows, truncated } = await context.query(query);
    const rowObjects = rows.map((row) =>
      Object.fromEntries(
        columns.map(({ name }, i) => {
          const value = row[i] ?? null;
          return [
            name,
            typeof value === 'string' && value.length > cellLength ? `${value.slice(0, cellLength)}…` : value,
          ];
        }),
      ),
    );
    return {
      data: { rows: rowObjects, ...(truncated ? { truncated: 'there are more rows than are shown' } : {}) },
      rows: rows.length,
    };
  },
});
