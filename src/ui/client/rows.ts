import { formatQuantity } from '../../vocabulary/format.js';
import type { Counter, TimelineData, TrackData } from '../timeline/shown.js';

/** Height of the time axis above the rows, px. */
export const axisHeight = 22;
export const laneHeight = 16;
const trackGap = 6;
export const headHeight = 20;
export const counterHeight = 30;
/** Height of a line above a curve. */
export const captionHeight = 14;

/** A row of the picture that shows one lane. */
export interface LaneRow {
  lane: number;
  /** Distance from the top of the picture, px. */
  top: number;
  track: TrackData;
  first: boolean;
  /** Shows the lane during another step, below the row of the shown one. */
  overlaid: boolean;
}

/** What decides which rows there are. */
interface RowChoice {
  /** Keys of collapsed groups. */
  closed: ReadonlySet<string>;
  /** Whether another step is shown below each lane. */
  overlaid: boolean;
  /** Whether a text fits into the column of names. */
  fits: (text: string) => boolean;
}

/** Header of a group of rows, which it collapses and expands. */
export interface Head {
  top: number;
  label: string;
  /** Unique key of the group. */
  key: string;
  /** 1: a group inside a rank. */
  depth: 0 | 1;
  /** Number of lanes and counters that are hidden while the group is collapsed. */
  hidden: number;
}

export interface Layout {
  lanes: LaneRow[];
  heads: Head[];
  counters: CounterRow[];
  /** Series with one value: a line of text each. */
  constants: { top: number; text: string }[];
  height: number;
}

export interface CounterRow {
  /** Top of the curve, px. */
  top: number;
  counter: Counter;
  limit: string;
  /** Name and limit are on a line above the curve, since they are wider than the column of names. */
  caption: boolean;
}

const limitOf = ({ values, unit }: Counter): string => {
  const max = values.reduce((largest, value) => Math.max(largest, value), 0);
  return `up to ${formatQuantity(max, unit)}`;
};

const isConstant = ({ values }: Counter): boolean => values.every((value) => value === values[0]);

/** Rows from top to bottom: each rank with its threads and devices, in the order of the tables, then the counters. */
export function layoutOf(
  { tracks, tables }: TimelineData,
  counters: readonly Counter[],
  { closed, overlaid, fits }: RowChoice,
): Layout {
  const layout: Layout = { lanes: [], heads: [], counters: [], constants: [], height: axisHeight };
  /** @returns whether the group is expanded */
  const head = (key: string, label: string, depth: Head['depth'], rows: number): boolean => {
    const isClosed = closed.has(key);
    layout.heads.push({ top: layout.height, label, key, depth, hidden: isClosed ? rows : 0 });
    layout.height += headHeight;
    return !isClosed;
  };
  const lanesOf = (rowTracks: readonly TrackData[]): number =>
    rowTracks.reduce((sum, { lanes }) => sum + lanes, 0);
  const ranks = [...new Set(tracks.map(({ rank }) => rank ?? 0))].sort((a, b) => a - b);
  for (const rank of ranks) {
    const rankTracks = tracks.filter((track) => (track.rank ?? 0) === rank);
    const several = ranks.length > 1;
    if (several && !head(`rank ${rank}`, `rank ${rank}`, 0, lanesOf(rankTracks))) continue;
    for (const { label, tracks: groupTracks } of groupsOf(rankTracks)) {
      if (!head(`rank ${rank} ${label}`, label, several ? 1 : 0, lanesOf(groupTracks))) continue;
      for (const track of groupTracks.toSorted((a, b) => tables.indexOf(a.table) - tables.indexOf(b.table))) {
        for (let lane = 0; lane < track.lanes; lane++) {
          for (const isOther of overlaid ? [false, true] : [false]) {
            const row = { lane: track.firstLane + lane, track, first: lane === 0, overlaid: isOther };
            layout.lanes.push({ ...row, top: layout.height });
            layout.height += laneHeight;
          }
        }
        layout.height += trackGap;
      }
    }
  }
  if (counters.length > 0 && head('sampled', 'Sampled', 0, counters.length)) {
    for (const counter of counters.filter((series) => !isConstant(series))) {
      const limit = limitOf(counter);
      const caption = !fits(counter.label) || !fits(limit);
      if (caption) layout.height += captionHeight;
      layout.counters.push({ top: layout.height, counter, limit, caption });
      layout.height += counterHeight + trackGap;
    }
    for (const counter of counters.filter(isConstant)) {
      layout.constants.push({
        top: layout.height,
        text: `${counter.label}: ${formatQuantity(counter.values[0]!, counter.unit)}, constant`,
      });
      layout.height += captionHeight;
    }
  }
  return layout;
}

/** The group header at a height of the picture. */
export const headAt = ({ heads }: Layout, y: number): Head | undefined =>
  heads.find(({ top }) => y >= top && y < top + headHeight);

/** Groups of tracks: stages first, since they name what runs below them; then devices, then threads. */
function groupsOf(tracks: readonly TrackData[]): { label: string; tracks: TrackData[] }[] {
  const groups = new Map<string, TrackData[]>();
  const rankOf = ({ table, device }: TrackData): string =>
    table === 'stages' ? 'Stages' : device === null ? 'Host' : `GPU ${device}`;
  for (const track of tracks) groups.set(rankOf(track), [...(groups.get(rankOf(track)) ?? []), track]);
  const order = (label: string): number => (label === 'Stages' ? 0 : label === 'Host' ? 2 : 1);
  return [...groups]
    .map(([label, groupTracks]) => ({ label, tracks: groupTracks }))
    .sort((a, b) => order(a.label) - order(b.label));
}
