import type { TimelineData } from '../timeline/shown.js';
import { channelsOf } from './channels.js';
import { element } from './panel.js';
import { resolveColor } from './theme.js';

/** The same label can name an API call and the idle time during it, so the legend has several parts. */
const legendParts = [
  { head: 'stages', tables: ['stages'] },
  { head: 'kernels, copies, operators', tables: ['kernels', 'copies', 'ops'] },
  { head: 'idle', tables: ['gaps'] },
  { head: 'API calls', tables: ['api_calls'] },
];

/** Share of a class's own color when another class is highlighted. */
const fadedShare = 0.2;

/** One class of a legend part as a URL has it: its first table and the class id, as in gaps:launch_latency; null: all classes. */
export type Highlight = string | null;

/** Colors by table and class number. Classes other than the highlighted one fade into the surface. */
export function colorsOf(
  { classes }: TimelineData,
  highlight: Highlight,
  surface: string,
): Record<string, string[]> {
  const isClear = (table: string, id: string): boolean =>
    highlight === null || highlight === keyOf(partOf(table), id);
  return Object.fromEntries(
    Object.entries(classes).map(([table, tableClasses]) => [
      table,
      tableClasses.map(({ id, color }) => {
        const resolved = resolveColor(color);
        return isClear(table, id) ? resolved : mixed(resolved, surface, fadedShare);
      }),
    ]),
  );
}

/** A button per class that occurs, which highlights it. */
export function legendRows(
  { classes, tracks }: TimelineData,
  highlight: Highlight,
  choose: (highlight: Highlight) => void,
): HTMLElement[] {
  return legendParts.flatMap((part) => {
    const present = new Map<string, { label: string; color: string }>();
    for (const track of tracks)
      for (const number of part.tables.includes(track.table) ? track.classes : []) {
        const { id, label, color } = classes[track.table]![number]!;
        present.set(keyOf(part, id), { label, color });
      }
    const buttons = [...present].map(([key, { label, color }]) => {
      const swatch = element('span', { class: 'swatch', style: `background:${color}` });
      const button = element('button', { type: 'button', 'aria-pressed': String(key === highlight) }, swatch);
      button.append(label);
      button.addEventListener('click', () => choose(key === highlight ? null : key));
      return button;
    });
    return buttons.length === 0 ? [] : [element('p', {}, element('b', {}, part.head), ...buttons)];
  });
}

type Part = (typeof legendParts)[number];

const partOf = (table: string): Part => legendParts.find(({ tables }) => tables.includes(table))!;
const keyOf = ({ tables }: Part, id: string): string => `${tables[0]}:${id}`;

/** @param share of the first color */
function mixed(color: string, other: string, share: number): string {
  const [from, to] = [channelsOf(color), channelsOf(other)];
  return `rgb(${from.map((channel, i) => Math.round(share * channel + (1 - share) * to[i]!)).join(', ')})`;
}
