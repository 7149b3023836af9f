import { setImmediate } from 'node:timers/promises';
import type { Columns, Workbench } from '../../../model/workbench.js';
import type { TableName } from '../../../model/tables.js';
import type { ImportContext } from '../../importer.js';

/** A column of a table being kept; NaN is null. Loops over typed arrays, for a call a value costs more than the rest. */
export interface KeptColumn {
  fill(into: Float64Array, from: number, count: number): void;
  /** Of a text: its values are indexes into it. */
  texts?: readonly string[];
}

/** Rows gathered before they are handed on. */
const batchRows = 16_384;

/** Writes rows 0 … `rows` of a table of the model; it is on disk when Workbench.written says so. A column that is one value for all rows is given as that value. */
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
  const writer = await workbench.keepColumns(table, context.capture_id, announced, constants, rows);
  const batch: Columns = Object.fromEntries(given.map(([name]) => [name, new Float64Array(batchRows)]));
  for (let from = 0; from < rows; from += batchRows) {
    const count = Math.min(batchRows, rows - from);
    for (const [name, column] of given) column.fill(batch[name]!, from, count);
    await writer.append(batch, count);
    // So that Ctrl-C is heard.
    if (from % (batchRows * 32) === 0) await setImmediate();
  }
  await writer.close();
}

export function direct(values: Float64Array): KeptColumn {
  return { fill: (into, from, count) => into.set(values.subarray(from, from + count)) };
}

/** `values` by an index of each row; −1 is null. */
export function gathered(index: Int32Array, values: Float64Array, texts?: readonly string[]): KeptColumn {
  return {
    fill(into, from, count) {
      for (let i = 0; i < count; i++) {
        const at = index[from + i]!;
        into[i] = at < 0 ? Number.NaN : values[at]!;
      }
    },
    ...(texts && { texts }),
  };
}

export function computed(value: (row: number) => number, texts?: readonly string[]): KeptColumn {
  return {
    fill(into, from, count) {
      for (let i = 0; i < count; i++) into[i] = value(from + i);
    },
    ...(texts && { texts }),
  };
}

/** A column of the combinations: one value where it is the same in all of them. */
export function ofShape(
  shape: Int32Array,
  values: Float64Array | undefined,
  texts?: readonly string[],
): KeptColumn | string | number | null {
  if (!values || values.length === 0) return null;
  const first = values[0]!;
  if (!values.every((value) => Object.is(value, first))) return gathered(shape, values, texts);
  if (Number.isNaN(first)) return null;
  return texts ? texts[first]! : first;
}
