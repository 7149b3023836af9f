import type { Columns, KeptWriter, Workbench } from '../../../model/workbench.js';
import type { TableName } from '../../../model/tables.js';
import type { ImportContext } from '../../importer.js';

/** Values of one row; NaN is null. */
export type ColumnOf = (row: number) => number;

export interface KeptColumn {
  value: ColumnOf;
  /** Of a text: its values are indexes into it. */
  texts?: readonly string[];
}

/** Rows gathered before they are handed on. */
export const batchRows = 16_384;

/** Writes rows 0 … `rows` of a table of the model. A column that is one value for all rows is given as that value. */
export async function keepRows(
  workbench: Workbench,
  context: ImportContext,
  table: TableName,
  rows: number,
  columns: Record<string, KeptColumn | string | number | null>,
): Promise<void> {
  const constants: Record<string, string | number | null> = {
    execution_id: context.execution_id,
    host: context.host,
  };
  const given: [string, KeptColumn][] = [];
  for (const [name, column] of Object.entries(columns)) {
    if (typeof column === 'object' && column !== null) given.push([name, column]);
    else constants[name] = column;
  }
  const announced = Object.fromEntries(given.map(([name, { texts }]) => [name, texts ?? null]));
  const writer: KeptWriter = await workbench.keepColumns(table, context.capture_id, announced, constants);
  const batch: Columns = Object.fromEntries(given.map(([name]) => [name, new Float64Array(batchRows)]));
  const fills = given.map(([name, { value }]) => filler(value, batch[name]!));
  for (let from = 0; from < rows; from += batchRows) {
    const count = Math.min(batchRows, rows - from);
    for (const fill of fills) fill(from, count);
    writer.append(batch, count);
  }
  writer.close();
}

/**
 * A loop of its own for each column: one loop for all would call each time another function, which the compiler does
 * not inline (three times as long).
 */
function filler(value: ColumnOf, into: Float64Array): (from: number, count: number) => void {
  // oxlint-disable-next-line no-new-func
  return (from, count) => {
    for (let i = 0; i < count; i++) into[i] = value(from + i);
  };
}

/** A column of the combinations: constant where it is the same in all of them. */
export function ofShape(
  shape: Int32Array,
  values: Float64Array | undefined,
  texts?: readonly string[],
): KeptColumn | string | number | null {
  if (!values || values.length === 0) return null;
  const first = values[0]!;
  if (values.every((value) => value === first || (value !== value && first !== first))) {
    if (Number.isNaN(first)) return null;
    return texts ? texts[first]! : first;
  }
  const value: ColumnOf = (row) => values[shape[row]!]!;
  return texts ? { value, texts } : { value };
}
