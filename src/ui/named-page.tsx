import type { Child } from 'hono/jsx';
import type { NamedDurations } from '../facts/trace/named-durations.js';
import type { OpClass } from '../model/classes.js';
import { Blocks } from '../render/html/blocks.js';
import { safeText } from '../render/safe-text.js';
import type { Block } from '../views/block.js';
import { formatCount, formatNs, formatPart, formatPercent, plural } from '../vocabulary/format.js';
import { classLabel } from '../vocabulary/op-classes.js';
import { ChosenEvents, type ExecutionPart } from './chosen-events.js';
import { html, type SessionNamed, Shell } from './pages.js';
import { sessionPath } from './session-path.js';

/** The events of one name as a table row. */
export interface NamedRow extends NamedDurations {
  class: OpClass;
  share: number;
}

/** A sortable column: texts ascending, numbers descending. */
export interface SortColumn<T> {
  label: string;
  /** Numbers sort by value and are right-aligned. */
  sortKey: (row: T) => string | number;
  text: (row: T) => string;
}

/** Columns of several pages by their key in the URL. */
export const countColumn = (label: string): SortColumn<NamedRow> => ({
  label,
  sortKey: ({ count }) => count,
  text: ({ count }) => formatCount(count),
});
export const timeColumn = <T,>(label: string, value: (row: T) => number): SortColumn<T> => ({
  label,
  sortKey: value,
  text: (row) => formatNs(value(row)),
});
export const shareColumn = (label: string): SortColumn<NamedRow> => ({
  label,
  sortKey: ({ share }) => share,
  text: ({ share }) => formatPercent(share),
});

/** State of the table, stored in the URL. */
export interface TableState {
  sort: string;
  filter: string;
  /** Name of the selected row; '' for none. */
  chosen: string;
  /** Page number from 1. */
  page: number;
}

interface NamedPage<T extends NamedRow> {
  session: SessionNamed;
  part: ExecutionPart;
  state: TableState;
  title: string;
  /** Last part of the page's path. */
  page: string;
  /** Noun for a row and noun for the counted events, each singular and plural. */
  rowNoun: readonly [string, string];
  eventNoun: readonly [string, string];
  /** All rows, most time first. */
  rows: readonly T[];
  nameOf: (row: T) => string;
  /** Columns after name and class; `sortedBy` is the initial sort column. */
  columns: Readonly<Record<string, SortColumn<T>>>;
  sortedBy: string;
  /** Value that is summed over the filtered rows. */
  timed: { value: (row: T) => number; what: string };
  /** Shown above the table. @param linkTo link that selects a name */
  lead: (linkTo: (name: string) => string) => Child;
  /** Charts below the table; an empty list if there is nothing to draw. */
  charts?: (linkTo: (name: string) => string) => readonly Block[];
  /** Shown below the durations of the selected row. */
  more?: Child;
}

const rowsPerPage = 100;

/** A table of events by name, for the rank and device that the explanation uses. Its state is in the URL, so it works without a script. */
export function namedPage<T extends NamedRow>({
  session,
  part,
  state,
  title,
  page: ownPage,
  rowNoun,
  eventNoun,
  rows: all,
  nameOf,
  columns: numbers,
  sortedBy,
  timed,
  lead,
  charts = () => [],
  more,
}: NamedPage<T>): string {
  const { filter, chosen } = state;
  const columns: Record<string, SortColumn<T>> = {
    name: { label: title.replace(/s$/, ''), sortKey: nameOf, text: nameOf },
    class: { label: 'Class', sortKey: (row) => classLabel(row.class), text: (row) => classLabel(row.class) },
    ...numbers,
  };
  const isNumber = (id: string): boolean => Object.hasOwn(numbers, id);
  const sort = Object.hasOwn(columns, state.sort) ? state.sort : sortedBy;
  const path = sessionPath(session.key, ownPage);
  const address = (change: { sort?: string; name?: string; page?: string }): string => {
    const nextState = {
      sort,
      q: filter,
      name: chosen,
      ...(change.name && page > 1 ? { page: String(page) } : {}),
      ...change,
    };
    const query = Object.entries(nextState).filter(([, value]) => value !== '');
    return `${path}?${new URLSearchParams(query)}${change.name ? '#chosen' : ''}`;
  };
  const total = all.reduce((sum, row) => sum + timed.value(row), 0);
  const needle = filter.trim().toLowerCase();
  const matching = all.filter((row) =>
    `${row.name} ${nameOf(row)} ${classLabel(row.class)}`.toLowerCase().includes(needle),
  );
  const key = columns[sort]!.sortKey;
  const rows = matching.toSorted((a, b) => {
    const [x, y] = [key(a), key(b)];
    return typeof x === 'number' ? Number(y) - x : x.localeCompare(String(y), 'en');
  });
  const pages = Math.max(1, Math.ceil(rows.length / rowsPerPage));
  const page = Math.min(pages, Math.max(1, Math.floor(state.page) || 1));
  const chartBlocks = charts((name) => address({ name }));
  const events = all.reduce((sum, { count }) => sum + count, 0);
  return html(
    <Shell
      title={`${title}: ${session.title}`}
      navigation={{ session, current: path }}
      {...(more || chartBlocks.length > 0 ? { script: 'report-client.js' } : {})}
    >
      <section>
        <h1>{title}</h1>
        <p>
          {plural(events, ...eventNoun)} of {plural(all.length, ...rowNoun)}, {formatNs(total)} of{' '}
          {timed.what}
          {part.rank === null ? '' : `, rank ${part.rank}`}
          {part.device === null ? '' : `, GPU ${part.device}`}.
        </p>
        {lead((name) => address({ name }))}
      </section>
      {chartBlocks.length > 0 && (
        <section>
          <Blocks blocks={chartBlocks} />
        </section>
      )}
      {all
        .filter(({ name }) => chosen !== '' && name === chosen)
        .map((row) => (
          <ChosenEvents
            session={session}
            execution={part.execution}
            title={nameOf(row) || 'without a name'}
            name={row.name}
            row={row}
            eventNoun={eventNoun}
          >
            {more}
          </ChosenEvents>
        ))}
      <section>
        <form action={path} method="get" class="tools">
          <input type="hidden" name="sort" value={sort} />
          {chosen !== '' && <input type="hidden" name="name" value={chosen} />}
          <input
            type="search"
            name="q"
            value={filter}
            placeholder="name, class"
            aria-label="name or class to filter by"
          />
          <button type="submit">Filter</button>
          <output>
            {needle !== '' &&
              `${plural(rows.length, ...rowNoun)}, ${formatPart(
                rows.reduce((sum, row) => sum + timed.value(row), 0),
                total,
              )} of ${timed.what}`}
          </output>
        </form>
        <div class="scroll whole">
          <table class="whole stacks" id="named">
            <thead>
              <tr>
                {Object.entries(columns).map(([id, { label }]) => (
                  <th
                    scope="col"
                    class={isNumber(id) ? 'number' : ''}
                    {...(id === sort ? { 'aria-sort': isNumber(id) ? 'descending' : 'ascending' } : {})}
                  >
                    <a href={address({ sort: id })}>{label}</a>
                    {id === sort && (isNumber(id) ? ' ▾' : ' ▴')}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.slice(rowsPerPage * (page - 1), rowsPerPage * page).map((row) => (
                <tr {...(row.name === chosen ? { 'aria-current': 'true' } : {})}>
                  <td class="wraps">
                    <a href={address({ name: row.name })} title={safeText(row.name)}>
                      {safeText(nameOf(row)) || 'without a name'}
                    </a>
                  </td>
                  <td data-head={columns['class']!.label}>
                    <span>
                      <span class={`swatch c-${row.class}`} />
                      {classLabel(row.class)}
                    </span>
                  </td>
                  {Object.values(numbers).map(({ label, text }) => (
                    <td class="number" data-head={label}>
                      {text(row)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        {pages > 1 && (
          <p class="tools" id="pages">
            {page > 1 && <a href={address({ page: String(page - 1) })}>previous</a>}
            <span>
              page {page} of {pages}
            </span>
            {page < pages && <a href={address({ page: String(page + 1) })}>next</a>}
          </p>
        )}
      </section>
    </Shell>,
  );
}
