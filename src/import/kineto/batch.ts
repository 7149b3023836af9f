/** Columns of what a parser hands over; texts are codes of the parser's own names. */
export const batchColumns = {
  kernels: [
    'start_ns',
    'dur_ns',
    'device',
    'context',
    'stream',
    'correlation',
    'external',
    'graph_node',
    'name',
  ].concat(['grid', 'block', 'registers', 'shared_mem_bytes', 'graph_id']),
  copies: [
    'start_ns',
    'dur_ns',
    'device',
    'context',
    'stream',
    'correlation',
    'external',
    'graph_node',
    'name',
    'bytes',
  ],
  api: ['start_ns', 'dur_ns', 'pid', 'tid', 'correlation', 'name', 'driver'],
  ranges: ['start_ns', 'end_ns', 'pid', 'tid', 'name'],
  ops: ['start_ns', 'dur_ns', 'pid', 'tid', 'external', 'name', 'python', 'input_shapes', 'input_types'],
  memory: ['t_ns', 'pid', 'tid', 'device', 'device_type', 'bytes', 'allocated', 'reserved'],
} as const satisfies Record<string, readonly string[]>;

export type BatchTable = keyof typeof batchColumns;
export const batchTables = Object.keys(batchColumns) as BatchTable[];

/** Rows of one table, column after column in one buffer, which moves between threads without a copy. */
export interface PackedRows {
  rows: number;
  values: Float64Array<ArrayBuffer>;
}

export interface Batch {
  tables: Record<BatchTable, PackedRows>;
  /** Texts of codes that are new in this batch; the codes count on from the last batch of the same parser. */
  texts: string[];
  /** Events of each category. */
  categories: Record<string, number>;
  /** Text that is not valid JSON, read all the same. */
  repaired: number;
  /** Events that could not be read and were passed over. */
  damaged: number;
  /** Events without a time or an end where they need one. */
  untimed: number;
  /** Events before the zero of their clock. */
  negative: number;
  /** Copies of a size that cannot be; they have none. */
  oversized: number;
  /** Shapes with a dimension that is not a size. */
  oddShapes: number;
  /** Bytes used; what follows is the beginning of an event that is not whole. */
  consumed: number;
  /** The array of events ended there. */
  closed: boolean;
}

export interface ColumnStore {
  /** A new row; its values are set by column number. */
  row(): number;
  columns: Float64Array<ArrayBuffer>[];
  pack(): PackedRows;
}

export function createColumns(table: BatchTable): ColumnStore {
  let capacity = 4096;
  let rows = 0;
  const store: ColumnStore = {
    columns: batchColumns[table].map(() => new Float64Array(capacity)),
    row() {
      if (rows === capacity) {
        capacity *= 2;
        store.columns.forEach((column, c) => {
          store.columns[c] = new Float64Array(capacity);
          store.columns[c].set(column);
        });
      }
      return rows++;
    },
    pack() {
      const values = new Float64Array(rows * store.columns.length);
      store.columns.forEach((column, c) => values.set(column.subarray(0, rows), c * rows));
      const packed = { rows, values };
      rows = 0;
      return packed;
    },
  };
  return store;
}
