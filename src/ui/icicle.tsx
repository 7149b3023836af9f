import type { FC } from 'hono/jsx';
import type { OpClass } from '../model/classes.js';
import { safeText } from '../render/safe-text.js';
import { formatNs, formatPart, formatPercent, plural } from '../vocabulary/format.js';

/** Total time of the events of one name with one path of callers, outermost first; the name is the last element. */
export interface Origin {
  path: readonly string[];
  class: OpClass | null;
  count: number;
  total_ns: number;
}

interface IcicleProps {
  /** Caption. */
  label: string;
  origins: readonly Origin[];
  total: number;
  /** Noun for the counted events, singular and plural. */
  eventNoun: readonly [string, string];
  linkTo: (name: string) => string;
  /** Label of a name. */
  labelOf?: (name: string) => string;
}

interface Part {
  label: string;
  title: string;
  x: number;
  ns: number;
  /** Class of all events in the part; null for several classes. */
  fill: OpClass | null;
  name: string | null;
}

/** Minimum share of all time for a part of its own; smaller ones are included only in the part above. */
const minShare = 0.001;

/** CSS position and width of a part, both as shares of the chart's width. */
const positionStyle = (start: number, width: number): string =>
  `left: calc(${start} * 100%); width: calc(${width} * 100%)`;

/** Icicle chart: each level is below its caller, each part as wide as its time. */
export const Icicle: FC<IcicleProps> = ({ label, origins, total, eventNoun, linkTo, labelOf = String }) => {
  const depths = Math.max(0, ...origins.map(({ path }) => path.length));
  const levels: Part[][] = Array.from({ length: depths }, () => []);
  const placeParts = (parts: readonly Origin[], depth: number, x: number): void => {
    const groups = new Map<string, Origin[]>();
    for (const origin of parts) {
      const label = origin.path[depth];
      if (label === undefined) continue;
      const group = groups.get(label);
      if (group) group.push(origin);
      else groups.set(label, [origin]);
    }
    const sums = [...groups].map(([label, members]) => ({
      label,
      members,
      ns: members.reduce((sum, origin) => sum + origin.total_ns, 0),
    }));
    let nextX = x;
    for (const { label, members, ns } of sums.toSorted((a, b) => b.ns - a.ns)) {
      const isName = depth === depths - 1;
      const classes = new Set(members.map((origin) => origin.class ?? 'other'));
      if (ns >= minShare * total) {
        const text = safeText(label) || 'without a name';
        const visible = isName ? safeText(labelOf(label)) || text : text;
        const count = members.reduce((sum, origin) => sum + origin.count, 0);
        levels[depth]!.push({
          label: visible,
          // Accessible names must contain the visible text.
          title: `${visible === text ? text : `${visible}, ${text}`}: ${formatNs(ns)} (${formatPart(ns, total)}), ${plural(count, ...eventNoun)}`,
          x: nextX,
          ns,
          fill: depth > 0 && classes.size === 1 ? [...classes][0]! : null,
          name: isName ? label : null,
        });
        placeParts(members, depth + 1, nextX);
      }
      nextX += ns;
    }
  };
  placeParts(origins, 0, 0);
  if (!(total > 0)) return <></>;
  return (
    <>
      <p class="spread">
        {label}. Parts below {formatPercent(minShare)} are left blank.
      </p>
      <div class="icicle" role="group" aria-label={label} style={`height: calc(1.5rem * ${depths})`}>
        {levels.flatMap((parts, depth) =>
          parts.map(({ label, title, x, ns, fill, name }) => {
            const box = {
              class: fill === null ? '' : `c-${fill}`,
              style: `top: calc(1.5rem * ${depth}); ${positionStyle(x / total, ns / total)}`,
              title,
            };
            const text = ns > 0.03 * total ? label : '';
            return name === null ? (
              <span {...box}>{text}</span>
            ) : (
              <a {...box} href={linkTo(name)} aria-label={title}>
                {text}
              </a>
            );
          }),
        )}
      </div>
    </>
  );
};
