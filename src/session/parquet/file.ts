import { createHash } from 'node:crypto';
import { closeSync, openSync, writeSync } from 'node:fs';
import type { Columns, KeptWriter } from '../../model/workbench.js';
import type { Digest } from '../kept-file.js';
import { columnEncoder, type ColumnSpec, constantChunk, physicalTypes } from './column.js';
import { binary, encodeThrift, i32, i64, list, struct, type ThriftStruct } from './thrift.js';

/** DuckDB's own size of a row group: one thread reads one. */
const groupRows = 122_880;

/** A column given row by row, or (`constant`) one value in all rows; a text's constant is an index into its texts. */
export interface FileColumn extends ColumnSpec {
  constant?: number | null;
}

/**
 * Writes a Parquet file of numbers and dictionary texts, row group by row group, from columns of doubles. DuckDB's own
 * writer looks at every value of every column, hashing most: a table of the model, most of whose columns are constant
 * or codes already, takes it five times as long (bench/nsys-import/README.md).
 */
export function openParquet(
  path: string,
  columns: readonly FileColumn[],
  done: (rows: number, digest: Digest) => void,
): KeptWriter {
  const hash = createHash('sha256');
  const file = openSync(path, 'wx');
  let bytes = 0;
  const write = (part: Uint8Array): void => {
    for (let from = 0; from < part.length;) from += writeSync(file, part, from);
    hash.update(part);
    bytes += part.length;
  };
  write(Buffer.from('PAR1'));
  const varying = columns.filter(({ constant }) => constant === undefined);
  const buffers: Columns = Object.fromEntries(varying.map(({ name }) => [name, new Float64Array(groupRows)]));
  const encoders = new Map(varying.map((spec) => [spec.name, columnEncoder(spec, groupRows)]));
  const groups: ThriftStruct[] = [];
  let filled = 0;
  let total = 0;

  function flush(): void {
    if (filled === 0) return;
    const begin = bytes;
    const chunks = columns.map((spec) => {
      const { pages, metadata } =
        spec.constant === undefined
          ? encoders.get(spec.name)!(buffers[spec.name]!, filled)
          : constantChunk(spec, spec.constant, filled);
      const at = bytes;
      for (const page of pages) write(page);
      const offsets: ThriftStruct =
        pages.length > 1
          ? [
              [9, i64(at + pages[0]!.length)],
              [11, i64(at)],
            ]
          : [[9, i64(at)]];
      const meta = [...metadata.slice(0, -1), ...offsets, metadata.at(-1)!];
      return struct([
        [2, i64(at)],
        [3, struct(meta)],
      ]);
    });
    groups.push([
      [1, list(chunks)],
      [2, i64(bytes - begin)],
      [3, i64(filled)],
    ]);
    total += filled;
    filled = 0;
  }

  return {
    append(given, rows) {
      for (let from = 0; from < rows;) {
        const n = Math.min(rows - from, groupRows - filled);
        for (const { name } of varying) {
          const source = given[name];
          if (!source) throw new Error(`column ${name} was announced and is not given`);
          buffers[name]!.set(n === source.length ? source : source.subarray(from, from + n), filled);
        }
        filled += n;
        from += n;
        if (filled === groupRows) flush();
      }
    },
    close() {
      flush();
      const footer = encodeThrift([
        [1, i32(1)],
        [2, list([root(columns.length), ...columns.map(element)])],
        [3, i64(total)],
        [4, list(groups.map(struct))],
        [6, binary('inferscope')],
      ]);
      write(footer);
      const length = Buffer.alloc(4);
      length.writeUInt32LE(footer.length);
      write(length);
      write(Buffer.from('PAR1'));
      closeSync(file);
      done(total, { bytes, sha256: hash.digest('hex') });
      return total;
    },
  };
}

function root(children: number) {
  return struct([
    [4, binary('schema')],
    [5, i32(children)],
  ]);
}

function element({ name, type }: ColumnSpec) {
  const optional = 1;
  const utf8 = 0;
  const fields: ThriftStruct = [
    [1, i32(physicalTypes[type])],
    [3, i32(optional)],
    [4, binary(name)],
  ];
  return struct(type === 'VARCHAR' ? [...fields, [6, i32(utf8)]] : fields);
}
