import { formatNs, formatPart } from '../../vocabulary/format.js';
import { idleCauseLabel } from '../../vocabulary/idle-causes.js';
import type { Lane } from './lane.js';
import { lanesIn } from './places.js';
import type { EventsRequest, Place, Selection, SelectedEvents } from './shown.js';
import type { Timeline } from './timeline.js';

const maxNames = 50;

/** The lanes of a table on one rank and device, with their numbers in the timeline. */
interface Group {
  id: string;
  table: string;
  /** Null if the timeline has only one rank. */
  rank: number | null;
  label: string;
  lanes: { number: number; lane: Lane }[];
}

/** Stages and operators are left out: they nest, so their times cannot be added. */
function groupsOf(timeline: Timeline): Group[] {
  const severalRanks = new Set(timeline.tracks.map(({ rank }) => rank)).size > 1;
  const groups = new Map<string, Group>();
  for (const [number, { track, lane }] of lanesIn(timeline).entries()) {
    const { table, rank, device } = track;
    if (table === 'stages' || table === 'ops') continue;
    const id = [table, rank ?? '', device ?? ''].join('.');
    const place = [
      ...(severalRanks && rank !== null ? [`rank ${rank}`] : []),
      ...(device === null ? [] : [`GPU ${device}`]),
    ];
    const group = groups.get(id) ?? {
      id,
      table,
      rank: severalRanks ? rank : null,
      label: [groupLabels[table], ...place].join(' · '),
      lanes: [],
    };
    groups.set(id, group);
    group.lanes.push({ number, lane });
  }
  return [...groups.values()];
}

/** Ids of the classes of each table's events, by number. */
type ClassIds = Readonly<Record<string, readonly string[]>>;

/** Full name and label of an event; the name of idle time is its cause. */
const nameOf = (
  timeline: Timeline,
  classIds: ClassIds,
  table: string,
  lane: Lane,
  index: number,
): { name: string; label: string } => {
  const number = lane.name[index]!;
  if (table !== 'gaps') return { name: timeline.names[number]!, label: timeline.labels[number]! };
  const cause = idleCauseLabel(classIds[table]![lane.class[index]!]!);
  return { name: cause, label: cause };
};

/** Calls `take` with each event of a group that overlaps a time range, and its time inside. */
function eachEvent(
  { lanes }: Group,
  start: number,
  end: number,
  take: (lane: Lane, index: number, ns: number, number: number) => void,
): void {
  for (const { number, lane } of lanes)
    for (let i = lane.firstEndingAfter(start); i < lane.length && lane.start[i]! < end; i++)
      take(lane, i, Math.min(lane.end[i]!, end) - Math.max(lane.start[i]!, start), number);
}

/** @param from ns since the start of the timeline */
export function selection(timeline: Timeline, classIds: ClassIds, from: number, to: number): Selection {
  const summed = groupsOf(timeline).map((group) => {
    const classes = new Map<string, number>();
    const names = new Map<string, { label: string; id: string; count: number; ns: number }>();
    eachEvent(group, timeline.from + from, timeline.from + to, (lane, index, ns) => {
      const id = classIds[group.table]![lane.class[index]!]!;
      classes.set(id, (classes.get(id) ?? 0) + ns);
      const { name, label } = nameOf(timeline, classIds, group.table, lane, index);
      const sums = names.get(name) ?? { label, id, count: 0, ns: 0 };
      sums.count++;
      sums.ns += ns;
      names.set(name, sums);
    });
    return { ...group, classes, names };
  });
  const byTime = <T extends { ns: number }>(rows: T[]): T[] => rows.sort((a, b) => b.ns - a.ns);
  return {
    groups: summed
      .map(({ id, table, rank, label, classes, names }) => {
        const total = [...classes.values()].reduce((sum, ns) => sum + ns, 0);
        const share = (ns: number): string => formatPart(ns, to - from);
        const texts = (ns: number) => ({ text: formatNs(ns), share: share(ns) });
        const sorted = [...names].sort(([, a], [, b]) => b.ns - a.ns);
        const unlisted = sorted.slice(maxNames);
        return {
          id,
          table,
          rank,
          label,
          total_ns: total,
          classes: byTime([...classes].map(([id, ns]) => ({ id, ns, ...texts(ns) }))),
          names: sorted.slice(0, maxNames).map(([name, sums]) => ({ name, ...sums, ...texts(sums.ns) })),
          others:
            unlisted.length === 0
              ? null
              : {
                  names: unlisted.length,
                  count: sum(unlisted, ({ count }) => count),
                  ...texts(sum(unlisted, ({ ns }) => ns)),
                },
          all: { count: sum(sorted, ({ count }) => count), ...texts(total) },
        };
      })
      .filter(({ total_ns }) => total_ns > 0),
  };
}

const eventsPerPage = 50;

/**
 * A page of the single events of one group in a selection.
 * @param request a page number beyond the end gives the last page
 */
export function selectedEvents(
  timeline: Timeline,
  classIds: ClassIds,
  { start, end, group: id, name, sort, page: wantedPage }: EventsRequest,
): SelectedEvents {
  const group = groupsOf(timeline).find((candidate) => candidate.id === id) ?? {
    id,
    table: '',
    rank: null,
    label: '',
    lanes: [],
  };
  const each = (take: (key: number, ns: number, place: Place, lane: Lane) => void): void =>
    eachEvent(group, timeline.from + start, timeline.from + end, (lane, index, ns, number) => {
      if (name === null || nameOf(timeline, classIds, group.table, lane, index).name === name)
        take(sort === 'start' ? lane.start[index]! : -ns, ns, { lane: number, index }, lane);
    });
  let total = 0;
  const allKeys: number[] = [];
  each((key, ns) => {
    total += ns;
    allKeys.push(key);
  });
  // Only the events of the page become row objects: a selection can have millions.
  const keys = Float64Array.from(allKeys).sort();
  const pages = Math.max(1, Math.ceil(keys.length / eventsPerPage));
  const page = Math.min(pages, Math.max(1, wantedPage));
  const first = (page - 1) * eventsPerPage;
  const last = Math.min(keys.length, first + eventsPerPage) - 1;
  const onPage: { key: number; row: SelectedEvents['rows'][number] }[] = [];
  each((key, ns, place, lane) => {
    if (key < keys[first]! || key > keys[last]!) return;
    const from = lane.start[place.index]! - timeline.from;
    const to = lane.end[place.index]! - timeline.from;
    onPage.push({
      key,
      row: {
        ...place,
        label: nameOf(timeline, classIds, group.table, lane, place.index).label,
        start: from,
        end: to,
        ns,
        duration: formatNs(to - from),
        text: formatNs(ns),
      },
    });
  });
  // Events with the same sort key as the first of the page can be on the page before.
  const before = first - keys.indexOf(keys[first]!);
  const rows = onPage
    .sort((a, b) => a.key - b.key)
    .slice(before, before + eventsPerPage)
    .map(({ row }) => row);
  return {
    label: group.label,
    count: keys.length,
    total_ns: total,
    text: formatNs(total),
    page,
    pages,
    rows,
  };
}

const sum = <T>(named: readonly [string, T][], valueOf: (item: T) => number): number =>
  named.reduce((total, [, item]) => total + valueOf(item), 0);

const groupLabels: Record<string, string> = {
  kernels: 'Kernels',
  copies: 'Copies',
  gaps: 'Idle time by cause',
  api_calls: 'API calls',
};
