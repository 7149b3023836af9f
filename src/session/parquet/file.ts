import { createHash } from 'node:crypto';
import { closeSync, openSync, writeSync } from 'node:fs';
import type { Digest } from '../digest.js';
import type { ColumnName } from './file-column.js';
import type { EncodedGroup } from './group.js';
import { columnMetadata, physicalTypes } from './pages.js';
import { binary, encodeThrift, i32, i64, list, struct, type ThriftStruct } from './thrift.js';

/** DuckDB's default row group size, which one thread reads. */
export const groupRows = 122_880;

/** A file written row group by row group. */
interface ParquetFile {
  writeGroup(group: EncodedGroup): void;
  close(): { rows: number; digest: Digest };
}

/**
 * Writes a Parquet file of numbers and dictionary texts from columns of doubles. DuckDB's own writer examines every value of every column
 * and hashes most, which takes 5x as long for our tables, where most columns are constant or already codes (bench/nsys-import/README.md).
 */
export function createParquet(path: string, columns: readonly ColumnName[]): ParquetFile {
  const hash = createHash('sha256');
  const file = openSync(path, 'wx');
  let bytes = 0;
  const write = (part: Uint8Array): void => {
    for (let from = 0; from < part.length;) from += writeSync(file, part, from);
    hash.update(part);
    bytes += part.length;
  };
  write(Buffer.from('PAR1'));
  const groups: ThriftStruct[] = [];
  let total = 0;

  return {
    writeGroup({ rows, chunks }) {
      const start = bytes;
      const written = chunks.map((chunk, index) => {
        const offset = bytes;
        for (const page of chunk.pages) write(page);
        return struct([
          [2, i64(offset)],
          [3, struct(columnMetadata(columns[index]!.name, chunk, offset))],
        ]);
      });
      groups.push([
        [1, list(written)],
        [2, i64(bytes - start)],
        [3, i64(rows)],
      ]);
      total += rows;
    },
    close() {
      const footer = encodeThrift([
        [1, i32(1)],
        [2, list([schemaRoot(columns.length), ...columns.map(schemaElement)])],
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
      return { rows: total, digest: { bytes, sha256: hash.digest('hex') } };
    },
  };
}

function schemaRoot(children: number) {
  return struct([
    [4, binary('schema')],
    [5, i32(children)],
  ]);
}

function schemaElement({ name, type }: ColumnName) {
  const optional = 1;
  const utf8 = 0;
  const fields: ThriftStruct = [
    [1, i32(physicalTypes[type])],
    [3, i32(optional)],
    [4, binary(name)],
  ];
  return struct(type === 'VARCHAR' ? [...fields, [6, i32(utf8)]] : fields);
}
