import { type Batch, batchTables, type BatchTable, type ColumnStore, createColumns } from './batch.js';
import { type CategoryKind, categoryKind, categoryKinds } from './categories.js';
import { type EventFields, createFields, readEvent } from './event-fields.js';
import { maxCopyBytes } from '../trace-tables.js';
import { createInterner, type SpanKind, spanKinds } from './interner.js';
import { closeBracket, comma, incomplete, malformed, openBrace, skipSpace } from './json-bytes.js';
import { nextEvent } from './split.js';

interface ChunkParser {
  /**
   * Reads events from `from` up to `end`, which need not be an event boundary.
   * @param last this is the last buffer
   */
  parse(bytes: Uint8Array, from: number, end: number, last: boolean): Batch;
}

const phaseComplete = 0x58;
const absent = Number.NaN;

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
  const fields = createFields();
  let untimed = 0;
  let negative = 0;
  let oversized = 0;

  function kindOf(bytes: Uint8Array, event: EventFields): CategoryKind {
    if (event.catTo === 0) return categoryKinds.ignored;
    const code = categories.code(bytes, event.catFrom, event.catTo, spanKinds.name);
    if (code >= kinds.length) {
      for (const text of categories.takeNew().texts) {
        kinds.push(categoryKind(text));
        categoryNames.push(text);
      }
    }
    counts[code] = (counts[code] ?? 0) + 1;
    return kinds[code]!;
  }

  function textCode(bytes: Uint8Array, from: number, to: number, kind: SpanKind): number {
    return to === 0 ? absent : names.code(bytes, from, to, kind);
  }

  const nameCode = (bytes: Uint8Array, from: number, to: number): number =>
    textCode(bytes, from, to, spanKinds.name);

  function addEvent(bytes: Uint8Array, event: EventFields): void {
    const kind = kindOf(bytes, event);
    if (kind === categoryKinds.ignored || kind === categoryKinds.unknown) return;
    const start = (event.tsUs - originUs) * 1000 + event.tsNs + offsetNs;
    if (event.tsUs < 0) negative++;
    if (kind === categoryKinds.instant) return addMemory(event, start);
    const dur = event.durUs * 1000 + event.durNs;
    // Beyond 104 days nanoseconds are not exact, and no trace is that long. NaN fails both comparisons.
    const hasStart = Math.abs(start - offsetNs) <= Number.MAX_SAFE_INTEGER;
    const hasTimes = hasStart && dur >= 0 && dur <= Number.MAX_SAFE_INTEGER;
    if (event.phase !== phaseComplete || (!hasTimes && !(kind === categoryKinds.range && hasStart))) {
      untimed++;
      return;
    }
    if (kind === categoryKinds.kernel) {
      addKernel(bytes, event, start, dur);
      if (event.collectiveTo > 0) addCollective(bytes, event, start, dur);
    } else if (kind === categoryKinds.copy) addCopy(bytes, event, start, dur);
    else if (kind === categoryKinds.range) addRange(bytes, event, start, dur);
    else if (kind === categoryKinds.op) addOp(bytes, event, start, dur, false);
    else if (kind === categoryKinds.python) addOp(bytes, event, start, dur, true);
    else addCall(bytes, event, start, dur, kind === categoryKinds.driver);
  }

  function addRange(bytes: Uint8Array, event: EventFields, start: number, dur: number): void {
    const { row, columns } = addRow('ranges');
    columns[0]![row] = start;
    columns[1]![row] = start + dur;
    columns[2]![row] = event.pid;
    columns[3]![row] = event.tid;
    columns[4]![row] = nameCode(bytes, event.nameFrom, event.nameTo);
  }

  function addOp(bytes: Uint8Array, event: EventFields, start: number, dur: number, isPython: boolean): void {
    const { row, columns } = addRow('ops');
    columns[0]![row] = start;
    columns[1]![row] = dur;
    columns[2]![row] = event.pid;
    columns[3]![row] = event.tid;
    columns[4]![row] = isPython ? absent : event.external;
    columns[5]![row] = nameCode(bytes, event.nameFrom, event.nameTo);
    columns[6]![row] = isPython ? 1 : 0;
    columns[7]![row] = textCode(bytes, event.shapesFrom, event.shapesTo, spanKinds.json);
    columns[8]![row] = textCode(bytes, event.typesFrom, event.typesTo, spanKinds.json);
  }

  function addCall(
    bytes: Uint8Array,
    event: EventFields,
    start: number,
    dur: number,
    isDriver: boolean,
  ): void {
    const { row, columns } = addRow('api');
    columns[0]![row] = start;
    columns[1]![row] = dur;
    columns[2]![row] = event.pid;
    columns[3]![row] = event.tid;
    columns[4]![row] = event.correlation;
    columns[5]![row] = nameCode(bytes, event.nameFrom, event.nameTo);
    columns[6]![row] = isDriver ? 1 : 0;
  }

  function addRow(table: BatchTable) {
    const store = stores[table];
    const row = store.addRow();
    return { row, columns: store.columns };
  }

  /** Old files have device and stream only as pid and tid. */
  function setDeviceColumns(
    columns: Float64Array[],
    row: number,
    bytes: Uint8Array,
    event: EventFields,
  ): void {
    columns[2]![row] = event.device === event.device ? event.device : event.pid;
    columns[3]![row] = event.context;
    columns[4]![row] = event.stream === event.stream ? event.stream : event.tid;
    columns[5]![row] = event.correlation;
    columns[6]![row] = event.external;
    columns[7]![row] = event.graphNode > 0 ? event.graphNode : absent;
    columns[8]![row] = nameCode(bytes, event.nameFrom, event.nameTo);
  }

  function addKernel(bytes: Uint8Array, event: EventFields, start: number, dur: number): void {
    const { row, columns } = addRow('kernels');
    columns[0]![row] = start;
    columns[1]![row] = dur;
    setDeviceColumns(columns, row, bytes, event);
    columns[9]![row] = textCode(bytes, event.gridFrom, event.gridTo, spanKinds.dims);
    columns[10]![row] = textCode(bytes, event.blockFrom, event.blockTo, spanKinds.dims);
    columns[11]![row] = event.registers;
    columns[12]![row] = event.shared;
    columns[13]![row] = event.graphId > 0 ? event.graphId : absent;
  }

  function addCopy(bytes: Uint8Array, event: EventFields, start: number, dur: number): void {
    const { row, columns } = addRow('copies');
    columns[0]![row] = start;
    columns[1]![row] = dur;
    setDeviceColumns(columns, row, bytes, event);
    columns[9]![row] = event.bytes;
    if (event.bytes === event.bytes && !(event.bytes >= 0 && event.bytes <= maxCopyBytes)) {
      columns[9]![row] = absent;
      oversized++;
    }
  }

  function addCollective(bytes: Uint8Array, event: EventFields, start: number, dur: number): void {
    const { row, columns } = addRow('collectives');
    columns[0]![row] = start;
    columns[1]![row] = dur;
    columns[2]![row] = event.device === event.device ? event.device : event.pid;
    columns[3]![row] = nameCode(bytes, event.collectiveFrom, event.collectiveTo);
    columns[4]![row] = nameCode(bytes, event.groupFrom, event.groupTo);
    columns[5]![row] = textCode(bytes, event.groupRanksFrom, event.groupRanksTo, spanKinds.dims);
    columns[6]![row] = nameCode(bytes, event.groupTextFrom, event.groupTextTo);
    columns[7]![row] = nameCode(bytes, event.dtypeFrom, event.dtypeTo);
    columns[8]![row] = event.groupSize;
    columns[9]![row] = event.sentElements;
    columns[10]![row] = event.receivedElements;
    columns[11]![row] = event.sequence;
    columns[12]![row] = event.peer;
  }

  /** [memory]: the caching allocator allocated (Bytes > 0) or freed. */
  function addMemory(event: EventFields, timeNs: number): void {
    if (!(Math.abs(timeNs - offsetNs) <= Number.MAX_SAFE_INTEGER) || !(Math.abs(event.bytes) <= maxCopyBytes))
      return;
    const { row, columns } = addRow('memory');
    columns[0]![row] = timeNs;
    columns[1]![row] = event.pid;
    columns[2]![row] = event.tid;
    columns[3]![row] = event.device;
    columns[4]![row] = event.deviceType;
    columns[5]![row] = event.bytes;
    columns[6]![row] = event.allocated;
    columns[7]![row] = event.reserved;
  }

  return {
    parse(bytes, from, end, last) {
      counts = [];
      untimed = negative = oversized = 0;
      let damaged = 0;
      let closed = false;
      let position = from;
      for (;;) {
        position = skipSpace(bytes, position);
        if (bytes[position] === comma) position = skipSpace(bytes, position + 1);
        if (position >= end) break;
        if (bytes[position] === closeBracket) {
          closed = true;
          position++;
          break;
        }
        const after = bytes[position] === openBrace ? readEvent(bytes, position, end, fields) : malformed;
        if (after === incomplete) break;
        if (after > 0) {
          addEvent(bytes, fields);
          position = after;
          continue;
        }
        damaged++;
        const nextStart = nextEvent(bytes, position + 1, end);
        if (nextStart > 0) position = nextStart;
        else {
          // If no further event starts, only the end of the array can follow.
          if (last) position = end;
          break;
        }
      }
      const { texts, repaired, oddShapes } = names.takeNew();
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
        consumed: position,
        closed,
      };
    },
  };
}
