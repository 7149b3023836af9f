import { binsPerTile, emptyEvents, type LaneRecord } from './tile-format.js';

/**
 * Events of one lane in the order of time, none of which overlap: times in ns since the session's start. Arrays and not rows, for a
 * lane can hold millions of events.
 */
export class Lane {
  length = 0;
  start = new Float64Array(64);
  end = new Float64Array(64);
  class = new Uint8Array(64);
  name = new Uint32Array(64);
  /** Shares over the whole lane, made when a wide tile is first asked for. */
  coarse: Coarse | null = null;

  get lastEnd(): number {
    return this.length === 0 ? Number.NEGATIVE_INFINITY : this.end[this.length - 1]!;
  }

  push(start: number, end: number, kind: number, name: number): void {
    if (this.length === this.start.length) {
      this.start = grown(this.start, new Float64Array(2 * this.length));
      this.end = grown(this.end, new Float64Array(2 * this.length));
      this.class = grown(this.class, new Uint8Array(2 * this.length));
      this.name = grown(this.name, new Uint32Array(2 * this.length));
    }
    this.start[this.length] = start;
    this.end[this.length] = end;
    this.class[this.length] = kind;
    this.name[this.length] = name;
    this.length++;
  }

  /** Index of the first event that ends after `ns`; `length` where none does. */
  after(ns: number): number {
    let [low, high] = [0, this.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.end[middle]! > ns) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** Index of the first event that starts at `ns` or later. */
  from(ns: number): number {
    let [low, high] = [0, this.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.start[middle]! >= ns) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

function grown<T extends Float64Array | Uint8Array | Uint32Array>(old: T, larger: T): T {
  larger.set(old);
  return larger;
}

/**
 * The same events in lanes in which none overlap: nested ranges below the one that encloses them.
 * @param events in any order; a lane of its own where they do not overlap already
 */
export function lanesOf(events: Lane): Lane[] {
  if (isLane(events)) return events.length === 0 ? [] : [events];
  const { start, end } = events;
  const order = Uint32Array.from({ length: events.length }, (_, i) => i);
  // Enclosing ranges first.
  order.sort((a, b) => start[a]! - start[b]! || end[b]! - end[a]!);
  const lanes: Lane[] = [];
  for (const i of order) {
    let lane = lanes.find(({ lastEnd }) => lastEnd <= start[i]!);
    if (!lane) lanes.push((lane = new Lane()));
    lane.push(start[i]!, end[i]!, events.class[i]!, events.name[i]!);
  }
  return lanes;
}

function isLane({ start, end, length }: Lane): boolean {
  for (let i = 1; i < length; i++) if (start[i]! < end[i - 1]!) return false;
  return true;
}

/**
 * What of a lane lies in a tile; null where nothing does.
 * @param from start of the tile, ns since the session's start; a multiple of its width after the start of the timeline
 * @param binNs width of one of its 512 bins, a power of two
 */
export function recordOf(
  lane: Lane,
  {
    number,
    zero,
    tile,
    level,
    most,
  }: { number: number; zero: number; tile: number; level: number; most: number },
): LaneRecord | null {
  const binNs = 2 ** level;
  const from = zero + tile * binsPerTile * binNs;
  const first = lane.after(from);
  const last = lane.from(from + binsPerTile * binNs);
  if (last <= first) return null;
  if (last - first <= most) return eventsOf(lane, number, first, last, from, binsPerTile * binNs);
  const coarse = (lane.coarse ??= coarsen(lane, zero));
  const classes =
    level >= coarse.level
      ? summed(coarse.classes, tile * binsPerTile * 2 ** (level - coarse.level), 2 ** (level - coarse.level))
      : sharesOf(lane, first, last, from, binNs, binsPerTile);
  return { lane: number, kind: 'shares', classes };
}

export interface Coarse {
  level: number;
  classes: Shares[];
}
interface Shares {
  class: number;
  shares: Float32Array;
}

/** A lane has so many bins at its coarse level, at least: wider tiles are summed from it instead of from millions of events. */
const coarseBins = 2 ** 15;

function coarsen(lane: Lane, zero: number): Coarse {
  const level = Math.max(0, Math.ceil(Math.log2((lane.lastEnd - zero) / coarseBins)));
  return { level, classes: sharesOf(lane, 0, lane.length, zero, 2 ** level, coarseBins) };
}

/** Means of `of` bins each, from bin `first` on. */
function summed(classes: readonly Shares[], first: number, of: number): Shares[] {
  return classes.flatMap(({ class: kind, shares }) => {
    const found = new Float32Array(binsPerTile);
    let any = false;
    for (let bin = first; bin < Math.min(first + binsPerTile * of, shares.length); bin++) {
      if (shares[bin] === 0) continue;
      found[Math.floor((bin - first) / of)]! += shares[bin]! / of;
      any = true;
    }
    return any ? [{ class: kind, shares: found }] : [];
  });
}

function eventsOf(
  lane: Lane,
  number: number,
  first: number,
  last: number,
  from: number,
  width: number,
): LaneRecord {
  const events = emptyEvents(last - first);
  for (let i = first; i < last; i++) {
    events.start[i - first] = Math.max(lane.start[i]! - from, -width / 2);
    events.end[i - first] = Math.min(lane.end[i]! - from, 1.5 * width);
    events.class[i - first] = lane.class[i]!;
    events.name[i - first] = lane.name[i]!;
  }
  return { lane: number, kind: 'events', first, ...events };
}

/** Share of each bin by class; of an event without duration the smallest share. */
function sharesOf(
  lane: Lane,
  first: number,
  last: number,
  from: number,
  binNs: number,
  bins: number,
): Shares[] {
  const byClass: (Float32Array | undefined)[] = [];
  for (let i = first; i < last; i++) {
    const shares = (byClass[lane.class[i]!] ??= new Float32Array(bins));
    const start = Math.max(0, (lane.start[i]! - from) / binNs);
    const end = Math.min(bins, (lane.end[i]! - from) / binNs);
    const bin = Math.min(bins - 1, Math.floor(start));
    if (end <= bin + 1) shares[bin]! += Math.max(end - start, Number.EPSILON);
    else for (let at = bin; at < end; at++) shares[at]! += Math.min(end, at + 1) - Math.max(start, at);
  }
  return byClass.flatMap((shares, kind) => (shares ? [{ class: kind, shares }] : []));
}
