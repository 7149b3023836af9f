import { derivedTables } from '../model/derived-tables.js';
import type { Table } from '../model/columns.js';
import { tableNames, tables } from '../model/tables.js';

export interface DescribedTable {
  name: string;
  doc: string;
  /** Computed from a timeline's recorded tables when a query uses it. */
  derived: boolean;
  columns: { name: string; type: string; doc: string }[];
}

/** The tables of the model as data, in their order; recorded tables first, then derived ones. */
export function describedTables(): DescribedTable[] {
  const describeTable = (name: string, { doc, columns }: Table, derived: boolean): DescribedTable => ({
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
    ...tableNames.map((name) => describeTable(name, tables[name], false)),
    ...Object.entries(derivedTables).map(([name, table]) => describeTable(name, table, true)),
  ];
}
