import type { Counter, TimelineShown, TrackShown } from '../timeline/shown.js';

export const laneHeight = 16;
const trackGap = 6;
const groupHeight = 20;
export const counterHeight = 30;

/** One line of the picture: a lane, or the head of a group of tracks. */
export interface LaneRow {
  lane: number;
  /** From the top of the picture, in pixels. */
  top: number;
  track: TrackShown;
  first: boolean;
}

export interface Layout {
  lanes: LaneRow[];
  groups: { top: number; label: string }[];
  counters: { top: number; counter: Counter }[];
  height: number;
}

/** Below the axis: ranks, in each its threads and devices in the order of the tables. */
export function layoutOf(
  { tracks, tables }: TimelineShown,
  counters: readonly Counter[],
  top: number,
): Layout {
  const layout: Layout = { lanes: [], groups: [], counters: [], height: top };
  const ranks = [...new Set(tracks.map(({ rank }) => rank ?? 0))].sort((a, b) => a - b);
  for (const rank of ranks) {
    const own = tracks.filter((track) => (track.rank ?? 0) === rank);
    for (const { label, of } of groupsOf(own)) {
      layout.groups.push({ top: layout.height, label: ranks.length > 1 ? `rank ${rank} · ${label}` : label });
      layout.height += groupHeight;
      for (const track of of.toSorted((a, b) => tables.indexOf(a.table) - tables.indexOf(b.table))) {
        for (let lane = 0; lane < track.lanes; lane++) {
          layout.lanes.push({ lane: track.firstLane + lane, top: layout.height, track, first: lane === 0 });
          layout.height += laneHeight;
        }
        layout.height += trackGap;
      }
    }
  }
  if (counters.length > 0) {
    layout.groups.push({ top: layout.height, label: 'Sampled' });
    layout.height += groupHeight;
  }
  for (const counter of counters) {
    layout.counters.push({ top: layout.height, counter });
    layout.height += counterHeight + trackGap;
  }
  return layout;
}

/** Stages first, for they name what is below them; then devices, then threads. */
function groupsOf(tracks: readonly TrackShown[]): { label: string; of: TrackShown[] }[] {
  const groups = new Map<string, TrackShown[]>();
  const rankOf = ({ table, device }: TrackShown): string =>
    table === 'stages' ? 'Stages' : device === null ? 'Host' : `GPU ${device}`;
  for (const track of tracks) groups.set(rankOf(track), [...(groups.get(rankOf(track)) ?? []), track]);
  const order = (label: string): number => (label === 'Stages' ? 0 : label === 'Host' ? 2 : 1);
  return [...groups].map(([label, of]) => ({ label, of })).sort((a, b) => order(a.label) - order(b.label));
}
