import { formatNs, formatPart } from '../../vocabulary/format.js';
import { idleCauseLabel } from '../../vocabulary/idle-causes.js';
import { lanesIn } from './places.js';
import type { Selection } from './shown.js';
import type { Timeline } from './timeline.js';

const namesShown = 50;

/**
 * @param classIds ids of the classes of each table's events, by number
 * @param from ns since the start of the timeline
 */
export function selection(
  timeline: Timeline,
  classIds: Readonly<Record<string, readonly string[]>>,
  from: number,
  to: number,
): Selection {
  const [start, end] = [timeline.from + from, timeline.from + to];
  const severalRanks = new Set(timeline.tracks.map(({ rank }) => rank)).size > 1;
  const groups = new Map<
    string,
    {
      table: string;
      device: string;
      classes: Map<string, number>;
      names: Map<string, { id: string; count: number; ns: number }>;
    }
  >();
  for (const { track, lane } of lanesIn(timeline)) {
    if (track.table === 'stages' || track.table === 'ops') continue;
    const device = track.device === null ? '' : ` · GPU ${track.device}`;
    const key = `${track.table}${track.rank ?? ''}${device}`;
    const group = groups.get(key) ?? {
      table: track.table,
      device: (severalRanks && track.rank !== null ? ` · rank ${track.rank}` : '') + device,
      classes: new Map(),
      names: new Map(),
    };
    groups.set(key, group);
    for (let i = lane.after(start); i < lane.length && lane.start[i]! < end; i++) {
      const ns = Math.min(lane.end[i]!, end) - Math.max(lane.start[i]!, start);
      const id = classIds[track.table]![lane.class[i]!]!;
      group.classes.set(id, (group.classes.get(id) ?? 0) + ns);
      const name = track.table === 'gaps' ? idleCauseLabel(id) : timeline.names[lane.name[i]!]!;
      const one = group.names.get(name) ?? { id, count: 0, ns: 0 };
      one.count++;
      one.ns += ns;
      group.names.set(name, one);
    }
  }
  const most = <T extends { ns: number }>(of: T[]): T[] => of.sort((a, b) => b.ns - a.ns);
  return {
    groups: [...groups.values()]
      .map(({ table, device, classes, names }) => {
        const total = [...classes.values()].reduce((sum, ns) => sum + ns, 0);
        const share = (ns: number): string => formatPart(ns, to - from);
        const texts = (ns: number) => ({ text: formatNs(ns), share: share(ns) });
        const sorted = [...names].sort(([, a], [, b]) => b.ns - a.ns);
        const others = sorted.slice(namesShown);
        return {
          table,
          label: `${groupLabels[table] ?? table}${device}`,
          total_ns: total,
          classes: most([...classes].map(([id, ns]) => ({ id, ns, share: share(ns) }))),
          names: sorted.slice(0, namesShown).map(([name, one]) => ({ name, ...one, ...texts(one.ns) })),
          others:
            others.length === 0
              ? null
              : {
                  names: others.length,
                  count: sum(others, ({ count }) => count),
                  ...texts(sum(others, ({ ns }) => ns)),
                },
        };
      })
      .filter(({ total_ns }) => total_ns > 0),
  };
}

const sum = <T>(named: readonly [string, T][], of: (one: T) => number): number =>
  named.reduce((total, [, one]) => total + of(one), 0);

const groupLabels: Record<string, string> = {
  kernels: 'Kernels',
  copies: 'Copies',
  gaps: 'Idle time by cause',
  api_calls: 'API calls',
};
