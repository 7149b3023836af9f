/**
 * Binary format of timeline tiles from server to page: 32-bit words, one record per lane after the other.
 *
 * A tile (level, n) is the time [n · 512 · 2^level, (n + 1) · 512 · 2^level) ns after the start of the timeline. If a lane has few events
 * in it, the record contains them; otherwise it has the share of time per class for each of the 512 bins. A share above 0 is never rounded
 * to 0, so an event is visible at every zoom level.
 */
export const binsPerTile = 512;
/** Events of all lanes in one response: about 100 kB, and a view needs three tiles. A timeline with many lanes exceeds it. */
const eventsPerTile = 8192;

/** Lanes with more events in a tile are sent as shares. @param lanes number of lanes of the timeline */
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

/** Number of the tile that contains a time. @param ns after the start of the timeline */
export const tileAt = (ns: number, level: number): number => Math.floor(ns / (binsPerTile * 2 ** level));

export function encodeRecords(records: readonly LaneRecord[]): Uint32Array<ArrayBuffer> {
  const words = new Uint32Array(records.reduce((sum, record) => sum + 4 + sizeOf(record), 0));
  const floats = new Float32Array(words.buffer);
  const bytes = new Uint8Array(words.buffer);
  let word = 0;
  for (const record of records) {
    words[word] = record.lane;
    words[word + 1] = kinds[record.kind];
    words[word + 2] = record.kind === 'events' ? record.start.length : record.classes.length;
    words[word + 3] = record.kind === 'events' ? record.first : 0;
    word += 4;
    if (record.kind === 'events') {
      for (let i = 0; i < record.start.length; i++, word += wordsPerEvent) {
        floats[word] = record.start[i]!;
        floats[word + 1] = record.end[i]! - record.start[i]!;
        words[word + 2] = record.class[i]! * 2 ** nameBits + record.name[i]!;
      }
    } else
      for (const shares of record.classes) {
        words[word] = shares.class;
        for (let bin = 0; bin < binsPerTile; bin++) {
          const share = shares.shares[bin]!;
          bytes[4 * (word + 1) + bin] = share > 0 ? Math.min(full, Math.max(1, Math.round(share * full))) : 0;
        }
        word += wordsPerClass;
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
  for (let word = 0; word < words.length;) {
    const [lane, kind, count, first] = [words[word]!, words[word + 1]!, words[word + 2]!, words[word + 3]!];
    word += 4;
    if (kind === kinds.events) {
      const record: EventsRecord = { lane, kind: 'events', first, ...emptyEvents(count) };
      for (let i = 0; i < count; i++, word += wordsPerEvent) {
        record.start[i] = floats[word]!;
        record.end[i] = floats[word]! + floats[word + 1]!;
        record.class[i] = words[word + 2]! >>> nameBits;
        record.name[i] = words[word + 2]! & (2 ** nameBits - 1);
      }
      records.push(record);
    } else {
      const classes: SharesRecord['classes'] = [];
      for (let c = 0; c < count; c++, word += wordsPerClass) {
        const shares = Float32Array.from(
          bytes.subarray(4 * (word + 1), 4 * (word + 1) + binsPerTile),
          (byte) => byte / full,
        );
        classes.push({ class: words[word]!, shares });
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
