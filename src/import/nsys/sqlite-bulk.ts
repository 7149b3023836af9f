import { readSync } from 'node:fs';
import type { Columns } from '../../model/workbench.js';
import { damagedCapture } from './damage.js';
import { cellCount, pageStart, readCell, type SqliteFile } from './sqlite-file.js';
import { createShapes, type Shapes } from './sqlite-shapes.js';
import { maxNameLength } from '../trace-tables.js';
import { cursor, halves, readHalves, readNumber, serialSize, varint } from './sqlite-record.js';

/** The columns of an nsys table to read, and how. A missing column stays null. */
export interface BulkTable {
  table: string;
  /** Columns that differ per row. */
  perRow: readonly string[];
  /** Columns that are equal in many rows: stored once per combination, with a code per row. */
  shape: readonly string[];
  /** Text column, as codes. */
  text?: string;
}

export interface DecodedBatch {
  rows: number;
  columns: Columns;
  /** Combinations that this decoder meets for the first time, in code order, and the first of their codes. */
  shapes: { first: number; rows: number; columns: Columns };
  /** Texts new to this decoder, in code order. */
  texts: string[];
}

export interface Decoder {
  /** @throws E_TRACE_FILE */
  decode(pages: Uint32Array): DecodedBatch;
}

/**
 * globalPid and globalTid do not fit a double: 8 bits of hardware id, 8 of the virtual machine, 24 of the
 * pid and 24 of the tid. They are read as the two columns named here; `noTid` of a globalPid has no meaning.
 */
export const globalColumns: Record<string, readonly [string, string]> = {
  globalPid: ['pid', 'noTid'],
  globalTid: ['pid', 'tid'],
  endGlobalTid: ['endPid', 'endTid'],
};

/** Output columns of wanted nsys columns. */
export function outputColumns(columns: readonly string[]): string[] {
  return columns.flatMap((column) => globalColumns[column] ?? [column]);
}

const skipColumn = 0;
const numberColumn = 1;
const globalIdColumn = 2;
const textColumn = 3;

/** Reads all rows of pages into columns. One decoder per table and thread, each with its own codes of shapes and texts. */
export function createDecoder(file: SqliteFile, spec: BulkTable): Decoder {
  const table = file.tables.get(spec.table);
  if (!table) throw new Error(`${spec.table} is not in ${file.path}`);
  const names = [
    ...outputColumns(spec.shape),
    ...outputColumns(spec.perRow),
    ...(spec.text ? [spec.text] : []),
  ];
  const shapeWidth = outputColumns(spec.shape).length;
  const rowid = table.rowidColumn < 0 ? -1 : names.indexOf(table.columns[table.rowidColumn]!);
  const plan = table.columns.map((column) => {
    if (column === spec.text) return { how: textColumn, slot: names.indexOf(column) };
    const how = globalColumns[column] ? globalIdColumn : numberColumn;
    const isWanted = spec.perRow.includes(column) || spec.shape.includes(column);
    return isWanted
      ? { how, slot: names.indexOf(outputColumns([column])[0]!) }
      : { how: skipColumn, slot: 0 };
  });
  while (plan.at(-1)?.how === skipColumn) plan.pop();
  const columnKinds = Uint8Array.from(plan, ({ how }) => how);
  const slots = Uint8Array.from(plan, ({ slot }) => slot);
  const shapes: Shapes = createShapes(outputColumns(spec.shape));
  const textCodes = new Map<string, number>();
  let texts: string[] = [];
  const row = new Float64Array(names.length);

  /** Reads one record into `row`. */
  function readRow(bytes: Buffer, view: DataView, offset: number, end: number): void {
    row.fill(Number.NaN);
    const headerEnd = offset + varint(bytes, offset);
    let type = 0;
    let body = headerEnd;
    offset = cursor.next;
    for (let column = 0; column < columnKinds.length && offset < headerEnd; column++) {
      type = bytes[offset]!;
      if (type < 0x80) offset++;
      else {
        type = varint(bytes, offset);
        offset = cursor.next;
      }
      const size = serialSize(type);
      if (body + size > end)
        throw damagedCapture(file.path, `A value of ${spec.table} is longer than its row.`);
      const how = columnKinds[column]!;
      if (how === numberColumn) row[slots[column]!] = readNumber(bytes, view, body, type);
      else if (how === globalIdColumn && type !== 0 && type < 10) {
        readHalves(bytes, view, body, type);
        row[slots[column]!] = (halves.high & 0xffff) * 256 + (halves.low >>> 24);
        row[slots[column]! + 1] = halves.low & 0xffffff;
      } else if (how === textColumn && type >= 13 && type % 2 === 1) {
        row[slots[column]!] = textCode(bytes.toString('utf8', body, body + Math.min(size, maxNameLength)));
      }
      body += size;
    }
  }

  function textCode(value: string): number {
    let code = textCodes.get(value);
    if (code === undefined) {
      code = textCodes.size;
      textCodes.set(value, code);
      texts.push(value);
    }
    return code;
  }

  return {
    decode(pages) {
      const { bytes, view, rows } = readPages(file, pages);
      const out = names.slice(shapeWidth).map(() => new Float64Array(rows));
      const codes = new Float64Array(rows);
      let outputRow = 0;
      for (let pageIndex = 0; pageIndex < pages.length; pageIndex++) {
        const base = pageIndex * file.pageSize;
        const header = base + pageStart(pages[pageIndex]!);
        const page = bytes.subarray(base, base + file.pageSize);
        const cells = cellCount(file, page, pages[pageIndex]!);
        for (let cellIndex = 0; cellIndex < cells; cellIndex++, outputRow++) {
          const cell = view.getUint16(header + 8 + cellIndex * 2);
          const length = varint(bytes, base + cell);
          const id = varint(bytes, cursor.next);
          const begin = cursor.next;
          if (length <= file.usable - 35) {
            if (begin + length > base + file.usable)
              throw damagedCapture(
                file.path,
                `A row of ${spec.table} extends beyond the end of page ${pages[pageIndex]}.`,
              );
            readRow(bytes, view, begin, begin + length);
          } else {
            const payload = Buffer.from(readCell(file, page, cell).payload);
            readRow(
              payload,
              new DataView(payload.buffer, payload.byteOffset, payload.byteLength),
              0,
              payload.length,
            );
          }
          if (rowid >= 0) row[rowid] = id;
          if (shapeWidth > 0) codes[outputRow] = shapes.code(row);
          for (let column = 0; column < out.length; column++)
            out[column]![outputRow] = row[shapeWidth + column]!;
        }
      }
      const columns: Columns = {};
      names.slice(shapeWidth).forEach((name, column) => (columns[name] = out[column]!));
      if (shapeWidth > 0) columns['shape'] = codes;
      const newTexts = texts;
      texts = [];
      return { rows, columns, shapes: shapes.takeNew(), texts: newTexts };
    },
  };
}

/** Pages in memory, with one read for consecutive pages, and their rows. */
function readPages(file: SqliteFile, pages: Uint32Array): { bytes: Buffer; view: DataView; rows: number } {
  const { pageSize } = file;
  const bytes = Buffer.allocUnsafeSlow(pages.length * pageSize);
  for (let from = 0; from < pages.length;) {
    let to = from + 1;
    while (to < pages.length && pages[to] === pages[to - 1]! + 1) to++;
    const size = (to - from) * pageSize;
    const read = readSync(file.fd, bytes, from * pageSize, size, (pages[from]! - 1) * pageSize);
    if (read < size) throw damagedCapture(file.path, `The file is cut off after page ${pages[from]}.`);
    from = to;
  }
  let rows = 0;
  pages.forEach((page, pageIndex) => {
    rows += cellCount(file, bytes.subarray(pageIndex * pageSize, (pageIndex + 1) * pageSize), page);
  });
  return { bytes, view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), rows };
}
