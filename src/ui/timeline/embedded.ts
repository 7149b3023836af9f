import type { EventRows, Row } from './details.js';
import { Lane, type Shares } from './lane.js';
import type { Counter, EventLinks, Span, Steps, TimelineData } from './shown.js';
import type { Timeline, Track, TrackTable } from './timeline.js';

/** A timeline as an exported file stores it: what a server would send, the lanes, and the table rows of some events. */
export interface EmbeddedTimeline {
  shown: TimelineData;
  /** Full names, for the search. */
  names: string[];
  counters: Counter[];
  steps: Steps[];
  links: EventLinks;
  /** Note on what the file lacks; empty if it has everything. */
  note: string;
  lanes: Lane[];
  rows: Partial<Record<TrackTable, readonly Row[]>>;
}

type Value = string | number | boolean | null;

interface Head extends Omit<EmbeddedTimeline, 'lanes' | 'rows'> {
  lanes: {
    events: number;
    windows: readonly Span[] | null;
    coarse: { level: number; bins: number; classes: number[] } | null;
  }[];
  /**
   * `values` null: integers, each stored as the difference from the one before. Otherwise the distinct values that the indices refer to.
   */
  rows: { table: TrackTable; rows: number; columns: { name: string; values: Value[] | null }[] }[];
}

/** Writes integers as variable-length groups of 7 bits, lowest first. */
class Writer {
  private bytes = new Uint8Array(1 << 16);
  private length = 0;

  private grow(by: number): void {
    if (this.length + by <= this.bytes.length) return;
    const larger = new Uint8Array(2 * (this.length + by));
    larger.set(this.bytes);
    this.bytes = larger;
  }
  number(value: number): void {
    this.grow(8);
    let rest = value;
    for (; rest >= 128; rest = Math.floor(rest / 128)) this.bytes[this.length++] = (rest % 128) + 128;
    this.bytes[this.length++] = rest;
  }
  byte(value: number): void {
    this.grow(1);
    this.bytes[this.length++] = value;
  }
  get written(): Uint8Array {
    return this.bytes.subarray(0, this.length);
  }
}

class Reader {
  constructor(
    private readonly bytes: Uint8Array,
    private offset: number,
  ) {}
  number(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.bytes[this.offset++]!;
      value += (byte % 128) * scale;
      if (byte < 128) return value;
    }
  }
  byte(): number {
    return this.bytes[this.offset++]!;
  }
}

/** Maps signed integers to unsigned ones: even numbers are >= 0, odd ones < 0. */
const unsigned = (value: number): number => (value < 0 ? -2 * value - 1 : 2 * value);
const signed = (value: number): number => (value % 2 === 1 ? -(value + 1) / 2 : value / 2);

/** The byte for a share of 1, as in tiles. */
const full = 255;
/** Columns with more distinct numbers are stored as differences. */
const fewValues = 200;

/** Stores column after column: similar bytes are then next to each other, which compresses better. */
export function encodeTimeline({ lanes, rows, ...head }: EmbeddedTimeline): Uint8Array {
  const body = new Writer();
  const zero = head.shown.zero;
  const laneHeads = lanes.map((lane) => {
    const each = (valueAt: (i: number) => number): void => {
      for (let i = 0; i < lane.length; i++) body.number(valueAt(i));
    };
    const rounded = (values: Float64Array, i: number): number => Math.round(values[i]! - zero);
    each((i) => rounded(lane.start, i) - (i === 0 ? 0 : rounded(lane.end, i - 1)));
    each((i) => rounded(lane.end, i) - rounded(lane.start, i));
    each((i) => lane.class[i]!);
    each((i) => lane.name[i]!);
    const coarse = lane.windows === null ? null : lane.coarse;
    for (const { shares } of coarse?.classes ?? [])
      for (const share of shares)
        body.byte(share > 0 ? Math.min(full, Math.max(1, Math.round(share * full))) : 0);
    return {
      events: lane.length,
      windows: lane.windows,
      coarse: coarse && {
        level: coarse.level,
        bins: coarse.classes[0]?.shares.length ?? 0,
        classes: coarse.classes.map((shares) => shares.class),
      },
    };
  });
  const tables = Object.entries(rows).map(([table, list]) => ({
    table: table as TrackTable,
    rows: list.length,
    columns: Object.keys(list[0] ?? {}).map((name) => writeColumn(body, name, list)),
  }));
  const text = new TextEncoder().encode(
    JSON.stringify({ ...head, lanes: laneHeads, rows: tables } satisfies Head),
  );
  const all = new Uint8Array(4 + text.length + body.written.length);
  new DataView(all.buffer).setUint32(0, text.length, true);
  all.set(text, 4);
  all.set(body.written, 4 + text.length);
  return all;
}

function writeColumn(
  body: Writer,
  name: string,
  rows: readonly Row[],
): Head['rows'][number]['columns'][number] {
  const numbers = new Map<Value, number>();
  for (const row of rows) {
    const value = row[name] as Value;
    if (!numbers.has(value)) numbers.set(value, numbers.size);
  }
  const areIntegers = [...numbers.keys()].every(
    (value) => typeof value === 'number' && Number.isSafeInteger(value),
  );
  if (areIntegers && numbers.size > fewValues) {
    let before = 0;
    for (const row of rows) {
      const value = row[name] as number;
      body.number(unsigned(value - before));
      before = value;
    }
    return { name, values: null };
  }
  for (const row of rows) body.number(numbers.get(row[name] as Value)!);
  return { name, values: [...numbers.keys()] };
}

export function decodeTimeline(all: Uint8Array): EmbeddedTimeline {
  const size = new DataView(all.buffer, all.byteOffset).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(all.subarray(4, 4 + size))) as Head;
  const body = new Reader(all, 4 + size);
  const zero = head.shown.zero;
  const lanes = head.lanes.map(({ events, windows, coarse }) => {
    const column = (): number[] => Array.from({ length: events }, () => body.number());
    const [gaps, durations, classes, names] = [column(), column(), column(), column()];
    const lane = new Lane(events);
    let time = zero;
    for (let i = 0; i < events; i++) {
      const start = time + gaps[i]!;
      time = start + durations[i]!;
      lane.push(start, time, classes[i]!, names[i]!);
    }
    lane.windows = windows;
    if (coarse)
      lane.coarse = {
        level: coarse.level,
        classes: coarse.classes.map((kind): Shares => ({
          class: kind,
          shares: Float32Array.from({ length: coarse.bins }, () => body.byte() / full),
        })),
      };
    return lane;
  });
  const rows: EmbeddedTimeline['rows'] = {};
  for (const { table, rows: count, columns } of head.rows) {
    const list = Array.from({ length: count }, (): Record<string, Value> => ({}));
    for (const { name, values } of columns) {
      let before = 0;
      for (const row of list) {
        if (values) row[name] = values[body.number()]!;
        else row[name] = before += signed(body.number());
      }
    }
    rows[table] = list;
  }
  return { ...head, lanes, rows };
}

/** The events of a file as a timeline of a session. */
export function timelineOf({ shown, names, lanes }: EmbeddedTimeline): Timeline {
  return {
    execution: '',
    from: shown.zero,
    to: shown.zero + shown.span,
    names,
    labels: shown.labels,
    reading: null,
    tracks: shown.tracks.map((track): Track => ({
      ...track,
      table: track.table as TrackTable,
      host: null,
      classes: new Set(track.classes),
      lanes: lanes.slice(track.firstLane, track.firstLane + track.lanes),
    })),
  };
}

/** The rows of events stored in a file. */
export const embeddedRows = (rows: EmbeddedTimeline['rows']): EventRows => ({
  rowOf: (track, start, end) => {
    const same = (row: Row): boolean =>
      (['rank', 'pid', 'tid', 'device', 'stream'] as const).every(
        (key) => track[key] === null || row[key] === track[key],
      );
    const row = (rows[track.table] ?? []).find((row) => {
      const [from, to] = [Number(row['start_ns']), endOf(row)];
      return (
        (track.table === 'gaps' ? from <= start && to >= end : from === start && to === end) && same(row)
      );
    });
    return Promise.resolve(row ?? null);
  },
  launchedBy: (call) => {
    let first: Row | null = null;
    for (const row of [...(rows.kernels ?? []), ...(rows.copies ?? [])])
      if (
        ['capture_id', 'pid', 'correlation'].every((key) => row[key] === call[key]) &&
        (first === null || Number(row['start_ns']) < Number(first['start_ns']))
      )
        first = row;
    return Promise.resolve(
      first && {
        start_ns: Number(first['start_ns']),
        dur_ns: Number(first['dur_ns']),
        device: Number(first['device']),
      },
    );
  },
});

const endOf = (row: Row): number => Number(row['end_ns'] ?? Number(row['start_ns']) + Number(row['dur_ns']));
