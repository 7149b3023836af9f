import { derivedTables } from '../model/derived-tables.js';
import { type Table, tableNames, tables } from '../model/tables.js';

export interface DescribedTable {
  name: string;
  doc: string;
  /** Made of a timeline's recorded tables when a query names it. */
  derived: boolean;
  columns: { name: string; type: string; doc: string }[];
}

/** The table model as data, in its own order; derived tables after those that are recorded. */
export function describedTables(): DescribedTable[] {
  const described = (name: string, { doc, columns }: Table, derived: boolean): DescribedTable => ({
    name,
    doc,
    derived,
    columns: Object.entries(columns).map(([column, { type, doc: meaning }]) => ({
      name: column,
      type,
      doc: meaning,
    })),
  });
  return [
    ...tableNames.map((name) => described(name, tables[name], false)),
    ...Object.entries(derivedTables).map(([name, table]) => described(name, table, true)),
  ];
}

/** docs/formats.md's section on the recorded tables. */
export function tablesMarkdown(): string {
  return describedTables()
    .filter(({ derived }) => !derived)
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

/** docs/formats.md's section on the derived tables; `inferscope sql --schema TABLE` says what each column means. */
export function derivedMarkdown(): string {
  const rows = describedTables()
    .filter(({ derived }) => derived)
    .map(({ name, doc, columns }) => {
      const listed = /^(own|focus)_/.test(name)
        ? ''
        : columns.map((column) => `\`${column.name}\``).join(', ');
      return `| \`${name}\` | ${doc} | ${listed} |`;
    });
  return ['| table | rows | columns |', '| --- | --- | --- |', ...rows].join('\n');
}
