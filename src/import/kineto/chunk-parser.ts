import { type Batch, batchTables, type BatchTable, type ColumnStore, createColumns } from './batch.js';
import { type CategoryKind, categoryKind, categoryKinds } from './categories.js';
import { type EventFields, freshFields, readEvent } from './event-fields.js';
import { maxCopyBytes } from '../trace-tables.js';
import { createInterner, spanKinds } from './interner.js';
import { closeBracket, comma, incomplete, openBrace, skipSpace } from './json-bytes.js';
import { nextEvent } from './split.js';

interface ChunkParser {
  /**
   * Reads events from `from` up to `end`, which need not be an event boundary.
   * @param last this is the last buffer
   */
  parse(bytes: Uint8Array, from: number, end: number, last: boolean): Batch;
}

const phaseComplete = 0x58;
const none = Number.NaN;

/** Session time of an event is (ts − originUs) × 1000 + offsetNs: integers far below 2^53, exact as doubles. */
export interface TraceClock {
  originUs: number;
  offsetNs: number;
}

/** Columns are written by number, in the order of batch.ts, so that no object is made per event. */
export function createChunkParser({ originUs, offsetNs }: TraceClock): ChunkParser {
  const stores = Object.fromEntries(batchTables.map((table) => [table, createColumns(table)])) as Record<
    BatchTable,
    ColumnStore
  >;
  const names = createInterner();
  const categories = createInterner();
  const kinds: CategoryKind[] = [];
  const categoryNames: string[] = [];
  let counts: number[] = [];
  const fields = freshFields();
  let untimed = 0;
  let negative = 0;
  let oversized = 0;

  function kindOf(bytes: Uint8Array, f: EventFields): CategoryKind {
    if (f.catTo === 0) return categoryKinds.ignored;
    const code = categories.code(bytes, f.catFrom, f.catTo, spanKinds.name);
    if (code >= kinds.length) {
      for (const text of categories.fresh().texts) {
        kinds.push(categoryKind(text));
        categoryNames.push(text);
      }
    }
    counts[code] = (counts[code] ?? 0) + 1;
    return kinds[code]!;
  }

  function name(bytes: Uint8Array, from: number, to: number): number {
    return to === 0 ? none : names.code(bytes, from, to, spanKinds.name);
  }

  function addEvent(bytes: Uint8Array, f: EventFields): void {
    const kind = kindOf(bytes, f);
    if (kind === categoryKinds.ignored || kind === categoryKinds.unknown) return;
    const start = (f.tsUs - originUs) * 1000 + f.tsNs + offsetNs;
    if (f.tsUs < 0) negative++;
    if (kind === categoryKinds.instant) return addMemory(f, start);
    const dur = f.durUs * 1000 + f.durNs;
    // Beyond 104 days nanoseconds are not exact, and no trace is that long. NaN fails both comparisons.
    const begins = Math.abs(start - offsetNs) <= Number.MAX_SAFE_INTEGER;
    const timed = begins && dur >= 0 && dur <= Number.MAX_SAFE_INTEGER;
    if (f.phase !== phaseComplete || (!timed && !(kind === categoryKinds.range && begins))) {
      untimed++;
      return;
    }
    if (kind === categoryKinds.kernel) {
      addKernel(bytes, f, start, dur);
      if (f.collectiveTo > 0) addCollective(bytes, f, start, dur);
    } else if (kind === categoryKinds.copy) addCopy(bytes, f, start, dur);
    else if (kind === categoryKinds.range) {
      const { row, columns: c } = next('ranges');
      c[0]![row] = start;
      c[1]![row] = start + dur;
      c[2]![row] = f.pid;
      c[3]![row] = f.tid;
      c[4]![row] = name(bytes, f.nameFrom, f.nameTo);
    } else if (kind === categoryKinds.op || kind === categoryKinds.python) {
      const { row, columns: c } = next('ops');
      c[0]![row] = start;
      c[1]![row] = dur;
      c[2]![row] = f.pid;
      c[3]![row] = f.tid;
      c[4]![row] = kind === categoryKinds.python ? none : f.external;
      c[5]![row] = name(bytes, f.nameFrom, f.nameTo);
      c[6]![row] = kind === categoryKinds.python ? 1 : 0;
      c[7]![row] = f.shapesTo === 0 ? none : names.code(bytes, f.shapesFrom, f.shapesTo, spanKinds.json);
      c[8]![row] = f.typesTo === 0 ? none : names.code(bytes, f.typesFrom, f.typesTo, spanKinds.json);
    } else {
      const { row, columns: c } = next('api');
      c[0]![row] = start;
      c[1]![row] = dur;
      c[2]![row] = f.pid;
      c[3]![row] = f.tid;
      c[4]![row] = f.correlation;
      c[5]![row] = name(bytes, f.nameFrom, f.nameTo);
      c[6]![row] = kind === categoryKinds.driver ? 1 : 0;
    }
  }

  function next(table: BatchTable) {
    const store = stores[table];
    const row = store.row();
    return { row, columns: store.columns };
  }

  /** Old files have device and stream only as pid and tid. */
  function setDeviceColumns(c: Float64Array[], row: number, bytes: Uint8Array, f: EventFields): void {
    c[2]![row] = f.device === f.device ? f.device : f.pid;
    c[3]![row] = f.context;
    c[4]![row] = f.stream === f.stream ? f.stream : f.tid;
    c[5]![row] = f.correlation;
    c[6]![row] = f.external;
    c[7]![row] = f.graphNode > 0 ? f.graphNode : none;
    c[8]![row] = name(bytes, f.nameFrom, f.nameTo);
  }

  function addKernel(bytes: Uint8Array, f: EventFields, start: number, dur: number): void {
    const { row, columns: c } = next('kernels');
    c[0]![row] = start;
    c[1]![row] = dur;
    setDeviceColumns(c, row, bytes, f);
    c[9]![row] = f.gridTo === 0 ? none : names.code(bytes, f.gridFrom, f.gridTo, spanKinds.dims);
    c[10]![row] = f.blockTo === 0 ? none : names.code(bytes, f.blockFrom, f.blockTo, spanKinds.dims);
    c[11]![row] = f.registers;
    c[12]![row] = f.shared;
    c[13]![row] = f.graphId > 0 ? f.graphId : none;
  }

  function addCopy(bytes: Uint8Array, f: EventFields, start: number, dur: number): void {
    const { row, columns: c } = next('copies');
    c[0]![row] = start;
    c[1]![row] = dur;
    setDeviceColumns(c, row, bytes, f);
    c[9]![row] = f.bytes;
    if (f.bytes === f.bytes && !(f.bytes >= 0 && f.bytes <= maxCopyBytes)) {
      c[9]![row] = none;
      oversized++;
    }
  }

  function addCollective(bytes: Uint8Array, f: EventFields, start: number, dur: number): void {
    const { row, columns: c } = next('collectives');
    c[0]![row] = start;
    c[1]![row] = dur;
    c[2]![row] = f.device === f.device ? f.device : f.pid;
    c[3]![row] = name(bytes, f.collectiveFrom, f.collectiveTo);
    c[4]![row] = name(bytes, f.groupFrom, f.groupTo);
    c[5]![row] =
      f.groupRanksTo === 0 ? none : names.code(bytes, f.groupRanksFrom, f.groupRanksTo, spanKinds.dims);
    c[6]![row] = name(bytes, f.groupTextFrom, f.groupTextTo);
    c[7]![row] = name(bytes, f.dtypeFrom, f.dtypeTo);
    c[8]![row] = f.groupSize;
    c[9]![row] = f.sentElements;
    c[10]![row] = f.receivedElements;
    c[11]![row] = f.sequence;
    c[12]![row] = f.peer;
  }

  /** [memory]: the caching allocator allocated (Bytes > 0) or freed. */
  function addMemory(f: EventFields, t: number): void {
    if (!(Math.abs(t - offsetNs) <= Number.MAX_SAFE_INTEGER) || !(Math.abs(f.bytes) <= maxCopyBytes)) return;
    const { row, columns: c } = next('memory');
    c[0]![row] = t;
    c[1]![row] = f.pid;
    c[2]![row] = f.tid;
    c[3]![row] = f.device;
    c[4]![row] = f.deviceType;
    c[5]![row] = f.bytes;
    c[6]![row] = f.allocated;
    c[7]![row] = f.reserved;
  }

  return {
    parse(bytes, from, end, last) {
      counts = [];
      untimed = negative = oversized = 0;
      let damaged = 0;
      let closed = false;
      let p = from;
      for (;;) {
        p = skipSpace(bytes, p);
        if (bytes[p] === comma) p = skipSpace(bytes, p + 1);
        if (p >= end) break;
        if (bytes[p] === closeBracket) {
          closed = true;
          p++;
          break;
        }
        const after = bytes[p] === openBrace ? readEvent(bytes, p, end, fields) : -2;
        if (after === incomplete) break;
        if (after > 0) {
          addEvent(bytes, fields);
          p = after;
          continue;
        }
        damaged++;
        const found = nextEvent(bytes, p + 1, end);
        if (found > 0) p = found;
        else {
          // If no further event starts, only the end of the array can follow.
          if (last) p = end;
          break;
        }
      }
      const { texts, repaired, oddShapes } = names.fresh();
      const tables = {} as Batch['tables'];
      for (const table of batchTables) tables[table] = stores[table].pack();
      return {
        tables,
        texts,
        repaired,
        damaged,
        untimed,
        negative,
        oversized,
        oddShapes,
        categories: Object.fromEntries(categoryNames.map((text, code) => [text, counts[code] ?? 0])),
        consumed: p,
        closed,
      };
    },
  };
}
