/** Columns of everything that ran on a device. */
const deviceColumns = [
  'start_ns',
  'dur_ns',
  'device',
  'context',
  'stream',
  'correlation',
  'external',
  'graph_node',
  'name',
] as const;

/** Columns of a parser's output; texts are codes of the parser's own names. */
export const batchColumns = {
  kernels: [...deviceColumns, 'grid', 'block', 'registers', 'shared_mem_bytes', 'graph_id'],
  copies: [...deviceColumns, 'bytes'],
  api: ['start_ns', 'dur_ns', 'pid', 'tid', 'correlation', 'name', 'driver'],
  ranges: ['start_ns', 'end_ns', 'pid', 'tid', 'name'],
  ops: ['start_ns', 'dur_ns', 'pid', 'tid', 'external', 'name', 'python', 'input_shapes', 'input_types'],
  /** Kernels of torch.distributed; `sent` and `received` are numbers of elements of type `dtype`. */
  collectives: ['start_ns', 'dur_ns', 'device', 'name', 'group', 'group_ranks', 'group_text', 'dtype'].concat(
    ['group_size', 'sent', 'received', 'sequence', 'peer'],
  ),
  memory: ['t_ns', 'pid', 'tid', 'device', 'device_type', 'bytes', 'allocated', 'reserved'],
} as const satisfies Record<string, readonly string[]>;

export type BatchTable = keyof typeof batchColumns;
export const batchTables = Object.keys(batchColumns) as BatchTable[];

/** Rows of one table in one column-major buffer, which moves between threads without a copy. */
interface PackedRows {
  rows: number;
  values: Float64Array<ArrayBuffer>;
}

export interface Batch {
  tables: Record<BatchTable, PackedRows>;
  /** Texts of the codes that are new in this batch; codes continue from the previous batch of the same parser. */
  texts: string[];
  /** Number of events per category. */
  categories: Record<string, number>;
  /** Number of texts that are not valid JSON but were read. */
  repaired: number;
  /** Number of unreadable events that were skipped. */
  damaged: number;
  /** Events without a required time or end. */
  untimed: number;
  /** Events before the zero of their clock. */
  negative: number;
  /** Copies with an impossible size, stored without one. */
  oversized: number;
  /** Shapes with an invalid dimension. */
  oddShapes: number;
  /** Position in the buffer after the events that were read; the rest is the start of an incomplete event. */
  consumed: number;
  /** The array of events ended in this batch. */
  closed: boolean;
}

export interface ColumnStore {
  /** Adds a row; its values are set by column number. */
  addRow(): number;
  columns: Float64Array<ArrayBuffer>[];
  pack(): PackedRows;
}

export function createColumns(table: BatchTable): ColumnStore {
  let capacity = 4096;
  let rows = 0;
  const store: ColumnStore = {
    columns: batchColumns[table].map(() => new Float64Array(capacity)),
    addRow() {
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
