import { z } from 'zod';
import { describedTables } from '../../session/table-schema.js';
import { askTool } from './tool.js';

export const schemaTool = askTool({
  name: 'schema',
  description:
    'Tables that have rows, and those derived from a timeline, with their columns. With a table: its columns with type and meaning. Ask before the first sql.',
  input: z.object({
    table: z.string().optional().describe('only this table, with the meaning of its columns'),
  }),
  inputLine: ({ table }) => table ?? null,
  async run({ table }, { sessions }) {
    const rowsOf = (name: string) =>
      sessions.reduce(
        (sum, { manifest }) => sum + (manifest.tables[name] ?? []).reduce((n, { rows }) => n + rows, 0),
        0,
      );
    const all = describedTables();
    const listed =
      table === undefined
        ? all.filter(({ name, derived }) => derived || rowsOf(name) > 0)
        : all.filter(({ name }) => name === table);
    return {
      data: {
        tables: listed.map(({ name, doc, derived, columns }) => ({
          name,
          doc,
          rows: derived ? null : rowsOf(name),
          columns: table === undefined ? columns.map((column) => column.name).join(', ') : columns,
        })),
        ...(listed.length === 0
          ? { note: `no such table; there are: ${all.map(({ name }) => name).join(', ')}` }
          : {}),
      },
      rows: listed.length,
    };
  },
});
