import type { FC, PropsWithChildren } from 'hono/jsx';
import type { NamedDurations } from '../facts/trace/named-durations.js';
import type { OpClass } from '../model/classes.js';
import { safeText } from '../render/safe-text.js';
import { classColors } from '../vocabulary/colors.js';
import { formatCount, formatNs, plural } from '../vocabulary/format.js';
import type { SessionNamed } from './pages.js';
import { sessionPath } from './session-path.js';

/** The part of a session that the rows are of: one rank and device of one execution. */
export interface ExecutionPart {
  execution: string;
  /** Null if the execution has only one rank. */
  rank: number | null;
  /** Null without a GPU. */
  device: number | null;
}

interface ChosenProps {
  session: SessionNamed;
  /** The execution with these events in its timeline; null if there is none. */
  execution: string | null;
  title: string;
  /** Full name, shown if the title differs. */
  name?: string;
  row: NamedDurations & { class: OpClass };
  /** Noun for the events, singular and plural. */
  eventNoun: readonly [string, string];
}

/** Minimum height of a bar with events, as a share of the highest: a lower one would not be visible. */
const minHeight = 0.015;

/** Duration statistics of the events of one name, with links to the longest ones. */
export const ChosenEvents: FC<PropsWithChildren<ChosenProps>> = ({
  session,
  execution,
  title,
  name = title,
  row,
  eventNoun,
  children,
}) => {
  const { longest, bins, min_ns, max_ns } = row;
  const [singular, several] = eventNoun;
  const maxCount = Math.max(...bins.map(({ count }) => count));
  const margin = 10 * max_ns;
  const query = new URLSearchParams({
    execution: execution ?? '',
    start: String(longest.start_ns - margin),
    end: String(longest.end_ns + margin),
    mark: `${longest.start_ns},${longest.end_ns}`,
  });
  const figures: [string, string][] = [
    [several, formatCount(row.count)],
    ['total', formatNs(row.total_ns)],
    ['min', formatNs(min_ns)],
    ['median', formatNs(row.median_ns)],
    ['p95', formatNs(row.p95_ns)],
    ['max', formatNs(max_ns)],
  ];
  return (
    <section id="chosen">
      <h2>{safeText(title)}</h2>
      {name !== '' && name !== title && <p class="spread">{safeText(name)}</p>}
      <dl class="figures">
        {figures.map(([label, text]) => (
          <div>
            <dt>{label}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <svg
        class="histogram"
        viewBox={`0 0 ${bins.length} ${maxCount}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${several} by duration, ${formatNs(min_ns)} to ${formatNs(max_ns)}`}
      >
        {bins.map(({ from_ns, to_ns, count }, index) => {
          const height = count === 0 ? 0 : Math.max(count, maxCount * minHeight);
          return (
            <rect x={index} y={maxCount - height} width="1" height={height} fill={classColors[row.class]}>
              <title>{`${formatNs(from_ns)} to ${formatNs(to_ns)}: ${plural(count, ...eventNoun)}`}</title>
            </rect>
          );
        })}
      </svg>
      <p class="ends spread">
        <span>{formatNs(min_ns)}</span>
        <span>duration, log scale; tallest bar: {plural(maxCount, ...eventNoun)}</span>
        <span>{formatNs(max_ns)}</span>
      </p>
      {execution !== null && (
        <p>
          <a href={`${sessionPath(session.key, '/timeline')}?${query}`}>longest {singular} in the timeline</a>
        </p>
      )}
      {children}
    </section>
  );
};
