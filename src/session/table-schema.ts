import { derivedTables } from '../model/derived-tables.js';
import type { Table } from '../model/columns.js';
import { tableNames, tables } from '../model/tables.js';

export interface DescribedTable {
  name: string;
  doc: string;
  /** Computed from the session's recorded tables when a query uses it. */
  derived: boolean;
  columns: { name: string; type: string; doc: string }[];
}

/** Descriptions of all tables of a session: recorded ones first, then derived ones. */
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
