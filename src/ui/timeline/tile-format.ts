/**
 * Binary format of timeline tiles from server to page: 32-bit words, one record per lane after the other.
 *
 * A tile (level, n) is the time [n · 512 · 2^level, (n + 1) · 512 · 2^level) ns after the start of the execution. If a lane has few events
 * in it, the record contains them; otherwise it has the share of time per class for each of the 512 bins. A share above 0 is never rounded
 * to 0, so an event is visible at every zoom level.
 */
export const binsPerTile = 512;
/** Maximum events of all lanes in one response: about 100 kB, and a view needs three tiles. */
const eventsPerTile = 8192;

/** Lanes with more events are sent as shares. @param lanes of the timeline */
export const eventsPerLane = (lanes: number): number => Math.max(64, Math.floor(eventsPerTile / lanes));

export interface EventsRecord {
  lane: number;
  kind: 'events';
  /** Index of the first event in its lane; the others follow it. */
  first: number;
  /** ns after the start of the tile, cut to half a tile before and after it. */
  start: Float64Array;
  end: Float64Array;
  class: Uint8Array;
  name: Uint32Array;
}

export interface SharesRecord {
  lane: number;
  kind: 'shares';
  /** Share of each bin, 0 to 1, for each class that occurs. */
  classes: { class: number; shares: Float32Array }[];
}

export type LaneRecord = EventsRecord | SharesRecord;

const kinds = { events: 0, shares: 1 } as const;
const wordsPerEvent = 3;
const wordsPerClass = 1 + binsPerTile / 4;
/** The byte for a share of 1. */
const full = 255;
/** Bits for the number of a name; the class is in the bits above. */
const nameBits = 24;

/** Number of the tile that contains a time. @param ns after the start of the execution */
export const tileAt = (ns: number, level: number): number => Math.floor(ns / (binsPerTile * 2 ** level));

export function encodeRecords(records: readonly LaneRecord[]): Uint32Array<ArrayBuffer> {
  const words = new Uint32Array(records.reduce((sum, record) => sum + 4 + sizeOf(record), 0));
  const floats = new Float32Array(words.buffer);
  const bytes = new Uint8Array(words.buffer);
  let at = 0;
  for (const record of records) {
    words[at] = record.lane;
    words[at + 1] = kinds[record.kind];
    words[at + 2] = record.kind === 'events' ? record.start.length : record.classes.length;
    words[at + 3] = record.kind === 'events' ? record.first : 0;
    at += 4;
    if (record.kind === 'events') {
      for (let i = 0; i < record.start.length; i++, at += wordsPerEvent) {
        floats[at] = record.start[i]!;
        floats[at + 1] = record.end[i]! - record.start[i]!;
        words[at + 2] = record.class[i]! * 2 ** nameBits + record.name[i]!;
      }
    } else
      for (const shares of record.classes) {
        words[at] = shares.class;
        for (let bin = 0; bin < binsPerTile; bin++) {
          const share = shares.shares[bin]!;
          bytes[4 * (at + 1) + bin] = share > 0 ? Math.min(full, Math.max(1, Math.round(share * full))) : 0;
        }
        at += wordsPerClass;
      }
  }
  return words;
}

const sizeOf = (record: LaneRecord): number =>
  record.kind === 'events' ? record.start.length * wordsPerEvent : record.classes.length * wordsPerClass;

export function decodeRecords(buffer: ArrayBuffer): LaneRecord[] {
  const words = new Uint32Array(buffer);
  const floats = new Float32Array(buffer);
  const bytes = new Uint8Array(buffer);
  const records: LaneRecord[] = [];
  for (let at = 0; at < words.length;) {
    const [lane, kind, count, first] = [words[at]!, words[at + 1]!, words[at + 2]!, words[at + 3]!];
    at += 4;
    if (kind === kinds.events) {
      const record: EventsRecord = { lane, kind: 'events', first, ...emptyEvents(count) };
      for (let i = 0; i < count; i++, at += wordsPerEvent) {
        record.start[i] = floats[at]!;
        record.end[i] = floats[at]! + floats[at + 1]!;
        record.class[i] = words[at + 2]! >>> nameBits;
        record.name[i] = words[at + 2]! & (2 ** nameBits - 1);
      }
      records.push(record);
    } else {
      const classes: SharesRecord['classes'] = [];
      for (let c = 0; c < count; c++, at += wordsPerClass) {
        const shares = Float32Array.from(
          bytes.subarray(4 * (at + 1), 4 * (at + 1) + binsPerTile),
          (byte) => byte / full,
        );
        classes.push({ class: words[at]!, shares });
      }
      records.push({ lane, kind: 'shares', classes });
    }
  }
  return records;
}

export const emptyEvents = (count: number): Pick<EventsRecord, 'start' | 'end' | 'class' | 'name'> => ({
  start: new Float64Array(count),
  end: new Float64Array(count),
  class: new Uint8Array(count),
  name: new Uint32Array(count),
});
