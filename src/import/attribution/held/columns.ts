import { setImmediate } from 'node:timers/promises';
import type { Columns, KeptColumn, Workbench } from '../../../model/workbench.js';
import type { TableName } from '../../../model/tables.js';
import type { ImportContext } from '../../importer.js';

/** What columns are made of. Loops over typed arrays, for a call a value costs more than the rest. */
export interface RowSource {
  fill(into: Float64Array, from: number, count: number): void;
}

/** A column of a table being kept; NaN is null. Columns of one source and no `values` are written from one array. */
export interface HeldColumn {
  source: RowSource;
  /** What it has at each value of the source; of a text: the index into `texts`. */
  values?: Float64Array;
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
  columns: Record<string, HeldColumn | string | number | null>,
): Promise<void> {
  const constants: Record<string, string | number | null> = {
    execution_id: context.execution_id,
    host: context.host,
  };
  const announced: Record<string, KeptColumn> = {};
  const sources = new Map<RowSource, string>();
  for (const [name, column] of Object.entries(columns)) {
    if (typeof column !== 'object' || column === null) {
      constants[name] = column;
      continue;
    }
    const { source, values, texts } = column;
    if (!sources.has(source)) sources.set(source, name);
    announced[name] = { from: sources.get(source)!, ...(values && { values }), ...(texts && { texts }) };
  }
  const writer = await workbench.keepColumns(table, context.capture_id, announced, constants, rows);
  const batch: Columns = {};
  for (const array of sources.values()) batch[array] = new Float64Array(Math.min(rows, batchRows));
  for (let from = 0; from < rows; from += batchRows) {
    const count = Math.min(batchRows, rows - from);
    for (const [source, array] of sources) source.fill(batch[array]!, from, count);
    await writer.append(batch, count);
    // So that Ctrl-C is heard.
    if (from % (batchRows * 32) === 0) await setImmediate();
  }
  await writer.close();
}

export function direct(values: Float64Array, texts?: readonly string[]): HeldColumn {
  const source = {
    fill(into: Float64Array, from: number, count: number) {
      into.set(values.subarray(from, from + count));
    },
  };
  return { source, ...(texts && { texts }) };
}

/** `values` by an index of each row; −1 is null. */
export function gathered(index: Int32Array, values: Float64Array | Int32Array): HeldColumn {
  return {
    source: {
      fill(into, from, count) {
        for (let i = 0; i < count; i++) {
          const at = index[from + i]!;
          into[i] = at < 0 ? Number.NaN : values[at]!;
        }
      },
    },
  };
}

export function computed(value: (row: number) => number, texts?: readonly string[]): HeldColumn {
  return {
    source: {
      fill(into, from, count) {
        for (let i = 0; i < count; i++) into[i] = value(from + i);
      },
    },
    ...(texts && { texts }),
  };
}

/** Columns that one pass over the rows makes together. @param fill writes `count` rows of each from `from` on */
export function together(
  columns: number,
  fill: (into: readonly Float64Array[], from: number, count: number) => void,
): HeldColumn[] {
  const made = Array.from({ length: columns }, () => new Float64Array(batchRows));
  let last = -1;
  return made.map((own) => ({
    source: {
      fill(into, from, count) {
        if (last !== from) fill(made, from, count);
        last = from;
        into.set(count === own.length ? own : own.subarray(0, count));
      },
    },
  }));
}

/** Columns of the combinations of a table's rows, whose index is one source for all of them. */
export function ofShapes(
  shape: Int32Array,
): (values: Float64Array | undefined, texts?: readonly string[]) => HeldColumn | string | number | null {
  const source: RowSource = {
    fill(into, from, count) {
      into.set(shape.subarray(from, from + count));
    },
  };
  return (values, texts) => {
    const same = sameInAll(values, texts);
    return same === undefined ? { source, values: values!, ...(texts && { texts }) } : same;
  };
}

/** The one value that all combinations have; undefined when they differ. */
export function sameInAll(
  values: Float64Array | undefined,
  texts?: readonly string[],
): string | number | null | undefined {
  if (!values || values.length === 0) return null;
  const first = values[0]!;
  if (!values.every((value) => Object.is(value, first))) return undefined;
  if (Number.isNaN(first)) return null;
  return texts ? texts[first]! : first;
}
