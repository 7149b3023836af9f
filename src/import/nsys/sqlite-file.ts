import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { messageOf } from '../../model/errors.js';
import { damagedCapture } from './damage.js';
import { columnsOf, type TableColumns } from './sqlite-columns.js';
import { cursor, readRecord, type SqliteValue, varint } from './sqlite-record.js';
import { plural, formatCount } from '../../vocabulary/format.js';

/**
 * Our own reader of SQLite's file format (https://sqlite.org/fileformat2.html) for reading whole tables: a binding returns
 * rows as JavaScript objects, 2 µs each, which is most of an import's time budget.
 * sqlite-file.test.ts compares it with SQLite, value by value.
 */
export interface SqliteFile {
  path: string;
  fd: number;
  pageSize: number;
  /** Page size minus the bytes that extensions reserve at its end. */
  usable: number;
  pages: number;
  /** Bytes after the pages that the header counts. */
  trailing: number;
  tables: Map<string, SqliteTable>;
  close(): void;
}

interface SqliteTable extends TableColumns {
  name: string;
  rootPage: number;
}

const magic = 'SQLite format 3\0';
const interiorTable = 0x05;
const leafTable = 0x0d;

/**
 * @throws E_TRACE_FILE if it is not a SQLite file, is truncated or damaged, or has uncommitted changes in a -wal or
 * -journal file
 */
export function openSqlite(path: string): SqliteFile {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch (error) {
    throw damagedCapture(path, messageOf(error), error);
  }
  try {
    return readHeader(path, fd);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

function readHeader(path: string, fd: number): SqliteFile {
  const head = Buffer.alloc(100);
  const size = fstatSync(fd).size;
  if (size === 0) throw damagedCapture(path, 'The file is empty.');
  const bytes = fstatSync(fd).isFile() ? readSync(fd, head, 0, 100, 0) : 0;
  if (bytes < 100 || head.toString('latin1', 0, 16) !== magic)
    throw damagedCapture(path, 'It has no SQLite header.');
  const pageSize = head.readUInt16BE(16) === 1 ? 65536 : head.readUInt16BE(16);
  const usable = pageSize - head[20]!;
  if (pageSize < 512 || (pageSize & (pageSize - 1)) !== 0 || usable < 480)
    throw damagedCapture(path, `Its header gives a page size of ${plural(pageSize, 'byte')}.`);
  if (head.readUInt32BE(56) > 1)
    throw damagedCapture(path, 'Its text is UTF-16; Nsight Systems writes UTF-8.');
  // The page count in the header is valid only when the version next to it is that of the last change.
  const headerPages = head.readUInt32BE(24) === head.readUInt32BE(92) ? head.readUInt32BE(28) : 0;
  if (headerPages * pageSize > size)
    throw damagedCapture(
      path,
      `The file is cut off: ${plural(size, 'byte')}, and its header says ${formatCount(headerPages * pageSize)}.`,
    );
  for (const suffix of ['-wal', '-journal']) {
    if ((statSync(path + suffix, { throwIfNoEntry: false })?.size ?? 0) > 0)
      throw damagedCapture(path, `${path}${suffix} exists: the last change of the database is not finished.`);
  }
  const pages = Math.floor(size / pageSize);
  const file: SqliteFile = {
    path,
    fd,
    pageSize,
    usable,
    pages,
    trailing: headerPages > 0 ? size - headerPages * pageSize : 0,
    tables: new Map(),
    close: () => closeSync(fd),
  };
  for (const [type, name, , root, sql] of readTableRows(file, 1)) {
    if (type !== 'table' || typeof name !== 'string' || typeof root !== 'number' || typeof sql !== 'string')
      continue;
    if (/\bWITHOUT\s+ROWID\s*(,|$)/i.test(sql)) continue;
    file.tables.set(name, { name, rootPage: root, ...columnsOf(sql) });
  }
  return file;
}

/**
 * One page.
 * @throws E_TRACE_FILE if there is no such page
 */
function readPage(file: SqliteFile, page: number): Buffer {
  if (!(page >= 1 && page <= file.pages))
    throw damagedCapture(file.path, `It refers to page ${page}, but has only ${file.pages} pages.`);
  const buffer = Buffer.allocUnsafe(file.pageSize);
  if (readSync(file.fd, buffer, 0, file.pageSize, (page - 1) * file.pageSize) < file.pageSize)
    throw damagedCapture(file.path, `Page ${page} is cut off.`);
  return buffer;
}

/** Start of the b-tree header of a page: on page 1 it follows the file header. */
export function pageStart(page: number): number {
  return page === 1 ? 100 : 0;
}

/**
 * The leaf pages of a table in the order of their rows.
 * @throws E_TRACE_FILE on a cycle or a page that does not belong to a table; most leaves are checked only when they are read
 */
export function leafPages(file: SqliteFile, root: number): Uint32Array {
  const leaves: number[] = [];
  const visited = new Set<number>();
  // The depth of a tree of 2^32 pages is far below this limit.
  const visit = (page: number, depth: number): void => {
    if (visited.has(page) || depth > 40)
      throw damagedCapture(file.path, `Page ${page} is its own successor.`);
    visited.add(page);
    const bytes = readPage(file, page);
    const start = pageStart(page);
    if (bytes[start] === leafTable) {
      leaves.push(page);
      return;
    }
    if (bytes[start] !== interiorTable)
      throw damagedCapture(
        file.path,
        `Page ${page} has type ${bytes[start]}, but a table page was expected.`,
      );
    const cells = bytes.readUInt16BE(start + 3);
    if (start + 12 + cells * 2 > file.usable)
      throw damagedCapture(file.path, `Page ${page} has ${cells} cells.`);
    const children: number[] = [];
    for (let i = 0; i < cells; i++) {
      const cell = bytes.readUInt16BE(start + 12 + i * 2);
      if (cell + 4 > file.usable)
        throw damagedCapture(file.path, `Cell ${i} of page ${page} lies outside of it.`);
      children.push(bytes.readUInt32BE(cell));
    }
    children.push(bytes.readUInt32BE(start + 8));
    if (leavesBelow(file, children[0]!)) {
      // Their type is checked when they are read: reading every leaf twice would double the work.
      for (const child of children) {
        if (!(child >= 1 && child <= file.pages))
          throw damagedCapture(file.path, `It refers to page ${child}, but has only ${file.pages} pages.`);
        if (visited.has(child)) throw damagedCapture(file.path, `Page ${child} is referenced twice.`);
        visited.add(child);
        leaves.push(child);
      }
    } else for (const child of children) visit(child, depth + 1);
  };
  visit(root, 0);
  return Uint32Array.from(leaves);
}

/** All leaves of a b-tree have the same depth. */
function leavesBelow(file: SqliteFile, page: number): boolean {
  return readPage(file, page)[pageStart(page)] === leafTable;
}

interface Cell {
  rowid: number;
  payload: Uint8Array;
}

/** The cell at `offset` of a leaf page, including its overflow pages. */
export function readCell(file: SqliteFile, page: Buffer, offset: number): Cell {
  const length = varint(page, offset);
  const rowid = varint(page, cursor.next);
  const begin = cursor.next;
  const { usable } = file;
  if (length <= usable - 35) {
    if (begin + length > usable) throw damagedCapture(file.path, 'A row extends beyond the end of its page.');
    return { rowid, payload: page.subarray(begin, begin + length) };
  }
  const minLocal = Math.floor(((usable - 12) * 32) / 255) - 23;
  const fits = minLocal + ((length - minLocal) % (usable - 4));
  const local = fits <= usable - 35 ? fits : minLocal;
  if (length > file.pages * usable || begin + local + 4 > usable)
    throw damagedCapture(file.path, `A row claims ${plural(length, 'byte')}.`);
  const payload = Buffer.allocUnsafe(length);
  page.copy(payload, 0, begin, begin + local);
  let next = page.readUInt32BE(begin + local);
  for (let filled = local; filled < length;) {
    const overflow = readPage(file, next);
    next = overflow.readUInt32BE(0);
    const part = Math.min(usable - 4, length - filled);
    overflow.copy(payload, filled, 4, 4 + part);
    filled += part;
  }
  return { rowid, payload };
}

/**
 * Number of cells of a leaf page.
 * @throws E_TRACE_FILE if it is not a leaf, or is too small for them
 */
export function cellCount(file: SqliteFile, bytes: Buffer, page: number): number {
  const start = pageStart(page);
  const cells = bytes.readUInt16BE(start + 3);
  if (bytes[start] !== leafTable || start + 8 + cells * 2 > file.usable)
    throw damagedCapture(file.path, `Page ${page} is not the expected table leaf page.`);
  return cells;
}

function* readTableRows(file: SqliteFile, root: number, rowidColumn = -1): Generator<SqliteValue[]> {
  for (const page of leafPages(file, root)) {
    const bytes = readPage(file, page);
    const cells = cellCount(file, bytes, page);
    for (let i = 0; i < cells; i++) {
      try {
        const { rowid, payload } = readCell(file, bytes, bytes.readUInt16BE(pageStart(page) + 8 + i * 2));
        const values = readRecord(payload);
        if (rowidColumn >= 0) values[rowidColumn] = rowid;
        yield values;
      } catch (error) {
        if (error instanceof RangeError)
          throw damagedCapture(file.path, `Page ${page}: ${error.message}.`, error);
        throw error;
      }
    }
  }
}

/** Rows of a table, the requested columns in the requested order; null if the table lacks the column. Empty if there is no such table. */
export function* readRows(
  file: SqliteFile,
  name: string,
  columns: readonly string[],
): Generator<SqliteValue[]> {
  const table = file.tables.get(name);
  if (!table) return;
  const places = columns.map((column) => table.columns.indexOf(column));
  for (const values of readTableRows(file, table.rootPage, table.rowidColumn)) {
    yield places.map((place) => values[place] ?? null);
  }
}
