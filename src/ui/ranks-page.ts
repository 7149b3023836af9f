import { emptySection } from './empty-section.js';
import type { CollectiveKind, RankWaits } from '../facts/collectives/calls-by-rank.js';
import type { Section, Table, Text } from '../views/block.js';
import type { HeatChart } from '../views/chart.js';
import { tableOf } from '../views/table-of.js';
import { formatBytes, formatMs, plural } from '../vocabulary/format.js';

/** Kinds offered for selection; the table of collectives on the overview has all. */
const kindsOffered = 20;

interface KindChoice {
  kinds: readonly CollectiveKind[];
  chosen: CollectiveKind;
  linkTo: (kind: CollectiveKind) => string;
  /** Link to a time range in the timeline of an execution. */
  placeOf: (execution: string, start: number, end: number) => string;
}

/** The execution is named if the session has several. */
const nameOf = (
  { operation, bytes, execution_id: execution }: CollectiveKind,
  kinds: readonly CollectiveKind[],
): string => {
  const isOnly = kinds.every(({ execution_id: other }) => other === execution);
  return `${operation}${bytes === null ? '' : ` of ${formatBytes(bytes)}`}${isOnly ? '' : ` (execution ${execution})`}`;
};

/** Chart of ranks over the calls of one kind of collective, shaded by waiting time: the rank without shade is the late one. */
export function collectiveSection(waits: readonly RankWaits[], selection: KindChoice): Section {
  const { chosen, kinds } = selection;
  const ranks = [...new Set(waits.map(({ rank }) => rank))];
  return {
    id: 'collective',
    title: 'Waiting by rank and call',
    blocks: [
      { type: 'text', text: kindLinks(selection) },
      {
        type: 'text',
        text: `${plural(chosen.calls, 'call')} of ${nameOf(chosen, kinds)} on ${plural(ranks.length, 'rank')}${chosen.communicators > 1 ? ` and ${plural(chosen.communicators, 'communicator')}, each numbered from call 1` : ''}. Waiting is what a rank took beyond the shortest time of the same call. Where the others waited, the rank that did not wait came last.`,
      },
      {
        type: 'chart',
        label: `Waiting of ranks over calls of ${nameOf(chosen, kinds)}`,
        chart: waitsChart(waits, ranks),
        behind: waitsTable(waits, ranks, selection),
      },
    ],
  };
}

/** Links to the other kinds of collectives. */
const kindLinks = ({ kinds, chosen, linkTo }: KindChoice): Text =>
  [
    'Collective: ',
    ...kinds
      .slice(0, kindsOffered)
      .flatMap((kind, index): Text[] => [
        index === 0 ? '' : ' · ',
        kind === chosen
          ? { text: nameOf(kind, kinds), tone: 'strong' }
          : { link: linkTo(kind), text: nameOf(kind, kinds) },
      ]),
    kinds.length > kindsOffered ? ` and ${kinds.length - kindsOffered} others, which took less time` : '',
  ].flat();

const callsText = (first: number, last: number): string => (first === last ? `${first}` : `${first}-${last}`);

function waitsChart(waits: readonly RankWaits[], ranks: readonly number[]): HeatChart {
  const bins = [...new Set(waits.map(({ bin }) => bin))].sort((a, b) => a - b);
  const longestMs = waits.reduce((longest, { waiting_ms: ms }) => Math.max(longest, ms), 0);
  return {
    form: 'heat',
    slim: true,
    shades: [0, 0.5, 1].map((shade) => ({ name: formatMs(shade * longestMs), shade })),
    x: {
      name: 'call',
      values: bins.map((bin) => {
        const binWaits = waits.filter((wait) => wait.bin === bin);
        return callsText(
          Math.min(...binWaits.map(({ first }) => first)),
          Math.max(...binWaits.map(({ last }) => last)),
        );
      }),
    },
    y: { name: 'rank', values: ranks.map(String).toReversed() },
    cells: waits.map(({ rank, bin, first, last, waiting_ms: ms }) => ({
      x: bins.indexOf(bin),
      y: ranks.length - 1 - ranks.indexOf(rank),
      shade: longestMs > 0 ? ms / longestMs : 0,
      lines: [{ n: ms, unit: 'ms' }],
      notes: [`rank ${rank}, call ${callsText(first, last)}`],
    })),
  };
}

/** Mean and longest waiting of each rank, the least first. */
function waitsTable(waits: readonly RankWaits[], ranks: readonly number[], { placeOf }: KindChoice): Table {
  const rows = ranks.map((rank) => {
    const rankWaits = waits.filter((wait) => wait.rank === rank);
    const longest = rankWaits.reduce((best, wait) => (wait.longest_ms > best.longest_ms ? wait : best));
    const calls = rankWaits.reduce((sum, { first, last }) => sum + last - first + 1, 0);
    const mean =
      rankWaits.reduce((sum, wait) => sum + wait.waiting_ms * (wait.last - wait.first + 1), 0) / calls;
    return { rank, mean, longest };
  });
  return tableOf(
    'Waiting by rank: the others wait for the rank that waits least',
    [
      { id: 'rank', head: 'rank', numeric: true, cell: ({ rank }) => ({ count: rank }) },
      { id: 'mean_ms', head: 'waiting, mean', numeric: true, cell: ({ mean: n }) => ({ n, unit: 'ms' }) },
      {
        id: 'longest_ms',
        head: 'longest',
        numeric: true,
        cell: ({ longest: { longest_ms: n } }) => ({ n, unit: 'ms' }),
      },
      {
        id: 'place',
        head: 'in the timeline',
        cell: ({ longest: { execution, start_ns: start, dur_ns: ns, first, last } }) =>
          start === null
            ? { missing: 'no start was recorded' }
            : {
                link: placeOf(execution, start, start + ns),
                text: first === last ? `call ${first}` : `in calls ${first}-${last}`,
              },
      },
    ],
    rows.toSorted((a, b) => a.mean - b.mean || a.rank - b.rank),
    { filter: true },
  );
}

/** Shown if the session has no timelines of several ranks: the reason, and the commands that join them. */
export const noRanks = emptySection(
  'collective',
  'Ranks',
  'No ranks.',
  'This session has no timelines of several ranks.',
  ['inferscope import FOLDER --ranks', 'Join the traces of the ranks of a job'],
);
