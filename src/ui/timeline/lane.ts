import type { Span } from './shown.js';
import { binsPerTile, emptyEvents, type LaneRecord } from './tile-format.js';

/**
 * Events of one lane in time order, none of which overlap; times in ns since the session's start. Typed arrays instead of row objects,
 * since a lane can have millions of events.
 */
export class Lane {
  length = 0;
  start: Float64Array;
  end: Float64Array;
  class: Uint8Array;
  name: Uint32Array;
  /** Shares over the whole lane, computed when a tile with many of its events is first requested. */
  coarse: CoarseShares | null = null;
  /** Times for which the lane has its events, ns since the session's start; elsewhere it has only its coarse shares. null: everywhere. */
  windows: readonly Span[] | null = null;

  /** @param expected number of events, more grow the arrays */
  constructor(expected = 64) {
    this.start = new Float64Array(expected);
    this.end = new Float64Array(expected);
    this.class = new Uint8Array(expected);
    this.name = new Uint32Array(expected);
  }

  get lastEnd(): number {
    return this.length === 0 ? Number.NEGATIVE_INFINITY : this.end[this.length - 1]!;
  }

  push(start: number, end: number, kind: number, name: number): void {
    if (this.length === this.start.length) this.resize(Math.max(64, 2 * this.length));
    this.start[this.length] = start;
    this.end[this.length] = end;
    this.class[this.length] = kind;
    this.name[this.length] = name;
    this.length++;
  }

  /** Frees the space for further events. */
  trim(): this {
    if (this.length < this.start.length) this.resize(this.length);
    return this;
  }

  private resize(size: number): void {
    this.start = resized(this.start, new Float64Array(size));
    this.end = resized(this.end, new Float64Array(size));
    this.class = resized(this.class, new Uint8Array(size));
    this.name = resized(this.name, new Uint32Array(size));
  }

  /** Index of the first event that ends after `ns`; `length` if there is none. */
  firstEndingAfter(ns: number): number {
    let [low, high] = [0, this.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.end[middle]! > ns) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** Index of the first event that starts at `ns` or later; `length` if there is none. */
  firstStartingFrom(ns: number): number {
    let [low, high] = [0, this.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.start[middle]! >= ns) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

function resized<T extends Float64Array | Uint8Array | Uint32Array>(old: T, made: T): T {
  made.set(old.subarray(0, made.length));
  return made;
}

/**
 * Splits events into lanes without overlap: nested ranges go below the range that contains them.
 * @param events in any order; without overlap they stay one lane
 */
export function lanesOf(events: Lane): Lane[] {
  if (isLane(events)) return events.length === 0 ? [] : [events.trim()];
  const { start, end } = events;
  const order = Uint32Array.from({ length: events.length }, (_, i) => i);
  // Outer ranges first.
  order.sort((a, b) => start[a]! - start[b]! || end[b]! - end[a]!);
  const lanes: Lane[] = [];
  for (const i of order) {
    let lane = lanes.find(({ lastEnd }) => lastEnd <= start[i]!);
    if (!lane) lanes.push((lane = new Lane()));
    lane.push(start[i]!, end[i]!, events.class[i]!, events.name[i]!);
  }
  return lanes.map((lane) => lane.trim());
}

function isLane({ start, end, length }: Lane): boolean {
  for (let i = 1; i < length; i++) if (start[i]! < end[i - 1]!) return false;
  return true;
}

interface TileRequest {
  number: number;
  /** Start of the timeline, ns since the session's start. */
  zero: number;
  tile: number;
  level: number;
  /** Lanes with more events in the tile are sent as shares. */
  maxEvents: number;
}

/** Records of a lane in a tile: its events, or the shares of its bins; a lane with windows can have both. */
export function recordsOf(lane: Lane, { number, zero, tile, level, maxEvents }: TileRequest): LaneRecord[] {
  const binNs = 2 ** level;
  const from = zero + tile * binsPerTile * binNs;
  const first = lane.firstEndingAfter(from);
  const last = Math.max(first, lane.firstStartingFrom(from + binsPerTile * binNs));
  const { windows } = lane;
  const shares = (classes: Shares[]): LaneRecord[] =>
    classes.length === 0 ? [] : [{ lane: number, kind: 'shares', classes }];
  if (windows === null && last === first) return [];
  const events = (): LaneRecord[] =>
    last === first ? [] : [eventsOf(lane, number, first, last, from, binsPerTile * binNs)];
  const few = last - first <= maxEvents;
  if (windows === null && few) return events();
  const coarse = (lane.coarse ??= coarsen(lane, zero));
  if (level >= coarse.level) {
    const coarseBinsPerBin = 2 ** (level - coarse.level);
    return shares(sumBins(coarse.classes, tile * binsPerTile * coarseBinsPerBin, coarseBinsPerBin));
  }
  const inside = (): Shares[] => sharesOf(lane, first, last, from, binNs, binsPerTile);
  if (windows === null) return shares(inside());
  const outside = outsideOf(windows, coarse, { zero, from, binNs });
  return few ? [...shares(outside), ...events()] : shares([...outside, ...inside()]);
}

/** Bins of a tile outside all windows, each with the shares of the wider bin around it. */
function outsideOf(
  windows: readonly Span[],
  { level, classes }: CoarseShares,
  { zero, from, binNs }: { zero: number; from: number; binNs: number },
): Shares[] {
  const wider = Array.from({ length: binsPerTile }, (_, bin) => {
    const middle = from + (bin + 0.5) * binNs;
    if (windows.some(({ start, end }) => middle >= start && middle < end)) return -1;
    return Math.floor((middle - zero) / 2 ** level);
  });
  return classes
    .map(({ class: kind, shares }) => ({
      class: kind,
      shares: Float32Array.from(wider, (bin) => shares[bin] ?? 0),
    }))
    .filter((part) => part.shares.some((share) => share > 0));
}

/** A lane with the events of some time windows, and coarse shares everywhere. @param level coarse bins are 2^level ns */
export function partOf(lane: Lane, windows: readonly Span[], zero: number, level: number): Lane {
  const part = new Lane();
  let next = 0;
  for (const { start, end } of windows)
    for (let i = Math.max(next, lane.firstEndingAfter(start)); i < lane.length && lane.start[i]! < end; i++) {
      part.push(lane.start[i]!, lane.end[i]!, lane.class[i]!, lane.name[i]!);
      next = i + 1;
    }
  part.windows = windows;
  const bins = Math.ceil((lane.lastEnd - zero) / 2 ** level);
  part.coarse = { level, classes: sharesOf(lane, 0, lane.length, zero, 2 ** level, bins) };
  return part;
}

/** Shares of a lane in bins of 2^level ns from the start of the timeline. */
export interface CoarseShares {
  level: number;
  classes: Shares[];
}
export interface Shares {
  class: number;
  shares: Float32Array;
}

/** Maximum bins of a lane at its coarse level: wider tiles are summed from them instead of from millions of events. */
const coarseBins = 2 ** 15;

function coarsen(lane: Lane, zero: number): CoarseShares {
  const level = Math.max(0, Math.ceil(Math.log2((lane.lastEnd - zero) / coarseBins)));
  return { level, classes: sharesOf(lane, 0, lane.length, zero, 2 ** level, coarseBins) };
}

/** Means over `count` bins each, from bin `first` on. */
function sumBins(classes: readonly Shares[], first: number, count: number): Shares[] {
  return classes.flatMap(({ class: kind, shares }) => {
    const bins = new Float32Array(binsPerTile);
    let any = false;
    for (let bin = first; bin < Math.min(first + binsPerTile * count, shares.length); bin++) {
      if (shares[bin] === 0) continue;
      bins[Math.floor((bin - first) / count)]! += shares[bin]! / count;
      any = true;
    }
    return any ? [{ class: kind, shares: bins }] : [];
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

/** Share of each bin by class; an event without duration gets the smallest share. */
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
    else
      for (let index = bin; index < end; index++)
        shares[index]! += Math.min(end, index + 1) - Math.max(start, index);
  }
  return byClass.flatMap((shares, kind) => (shares ? [{ class: kind, shares }] : []));
}
