import { type Table, tableNames, tables } from '../model/tables.js';

export interface DescribedTable {
  name: string;
  doc: string;
  columns: { name: string; type: string; doc: string }[];
}

/** The table model as data, in its own order. */
export function describedTables(): DescribedTable[] {
  return tableNames.map((name) => {
    const table: Table = tables[name];
    const columns = Object.entries(table.columns).map(([column, { type, doc }]) => ({
      name: column,
      type,
      doc,
    }));
    return { name, doc: table.doc, columns };
  });
}

/** docs/formats.md's section on the tables. */
export function tablesMarkdown(): string {
  return describedTables()
    .map(({ name, doc, columns }) => {
      const rows = columns.map((column) => `| \`${column.name}\` | ${column.type} | ${column.doc} |`);
      return [
        `### \`${name}\``,
        '',
        doc,
        '',
        '| column | type | meaning |',
        '| --- | --- | --- |',
        ...rows,
      ].join('\n');
    })
    .join('\n\n');
}
