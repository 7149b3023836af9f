import type { Child } from 'hono/jsx';
import type { NamedDurations } from '../facts/trace/named-durations.js';
import type { OpClass } from '../model/classes.js';
import { Blocks } from '../render/html/blocks.js';
import { Breakable } from '../render/html/words.js';
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
export function namedPage<T extends NamedRow>(content: NamedPage<T>): string {
  const { session, part, title, rows: all, eventNoun, rowNoun, nameOf, timed, more } = content;
  const { chosen } = content.state;
  const table = tableOf(content);
  const { path, address } = table;
  const chartBlocks = content.charts?.((name) => address({ name })) ?? [];
  const total = sumOf(all, timed.value);
  const events = sumOf(all, ({ count }) => count);
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
        {content.lead((name) => address({ name }))}
      </section>
      {chartBlocks.length > 0 && (
        <section>
          <h2>Roofline</h2>
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
        {filterForm(content, table)}
        {rowsTable(content, table)}
        {pageLinks(table)}
      </section>
    </Shell>,
  );
}

const sumOf = <T,>(rows: readonly T[], value: (row: T) => number): number =>
  rows.reduce((sum, row) => sum + value(row), 0);

/** The rows that the state selects, in its order. */
interface NamedTable<T> {
  path: string;
  columns: Readonly<Record<string, SortColumn<T>>>;
  /** Key of the column that the rows are sorted by. */
  sort: string;
  isFiltered: boolean;
  rows: readonly T[];
  page: number;
  pages: number;
  /** Link to the same table in another state. */
  address: (change: { sort?: string; name?: string; page?: string }) => string;
}

function tableOf<T extends NamedRow>(content: NamedPage<T>): NamedTable<T> {
  const { session, state, title, nameOf } = content;
  const columns: Record<string, SortColumn<T>> = {
    name: { label: title.replace(/s$/, ''), sortKey: nameOf, text: nameOf },
    class: { label: 'Class', sortKey: (row) => classLabel(row.class), text: (row) => classLabel(row.class) },
    ...content.columns,
  };
  const sort = Object.hasOwn(columns, state.sort) ? state.sort : content.sortedBy;
  const needle = state.filter.trim().toLowerCase();
  const matching = content.rows.filter((row) =>
    `${row.name} ${nameOf(row)} ${classLabel(row.class)}`.toLowerCase().includes(needle),
  );
  const key = columns[sort]!.sortKey;
  const rows = matching.toSorted((a, b) => {
    const [x, y] = [key(a), key(b)];
    return typeof x === 'number' ? Number(y) - x : x.localeCompare(String(y), 'en');
  });
  const pages = Math.max(1, Math.ceil(rows.length / rowsPerPage));
  const page = Math.min(pages, Math.max(1, Math.floor(state.page) || 1));
  const path = sessionPath(session.key, content.page);
  return {
    path,
    columns,
    sort,
    isFiltered: needle !== '',
    rows,
    page,
    pages,
    address(change) {
      const nextState = {
        sort,
        q: state.filter,
        name: state.chosen,
        ...(change.name && page > 1 ? { page: String(page) } : {}),
        ...change,
      };
      const query = Object.entries(nextState).filter(([, value]) => value !== '');
      return `${path}?${new URLSearchParams(query)}${change.name ? '#chosen' : ''}`;
    },
  };
}

function filterForm<T extends NamedRow>(content: NamedPage<T>, table: NamedTable<T>): Child {
  const { state, rowNoun, timed } = content;
  return (
    <form action={table.path} method="get" class="tools">
      <input type="hidden" name="sort" value={table.sort} />
      {state.chosen !== '' && <input type="hidden" name="name" value={state.chosen} />}
      <input
        type="search"
        name="q"
        value={state.filter}
        placeholder="name, class"
        aria-label="name or class to filter by"
      />
      <button type="submit">Filter</button>
      <output>
        {table.isFiltered &&
          `${plural(table.rows.length, ...rowNoun)}, ${formatPart(
            sumOf(table.rows, timed.value),
            sumOf(content.rows, timed.value),
          )} of ${timed.what}`}
      </output>
    </form>
  );
}

/** One page of the rows. */
function rowsTable<T extends NamedRow>(
  { state, nameOf, columns: numbers }: NamedPage<T>,
  table: NamedTable<T>,
): Child {
  const { columns, sort, page, address } = table;
  const isNumber = (id: string): boolean => Object.hasOwn(numbers, id);
  return (
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
          {table.rows.slice(rowsPerPage * (page - 1), rowsPerPage * page).map((row) => (
            <tr {...(row.name === state.chosen ? { 'aria-current': 'true' } : {})}>
              <td class="wraps">
                <a href={address({ name: row.name })} title={safeText(row.name)}>
                  <Breakable text={safeText(nameOf(row)) || 'without a name'} />
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
  );
}

const pageLinks = <T,>({ page, pages, address }: NamedTable<T>): Child =>
  pages > 1 && (
    <p class="tools" id="pages">
      {page > 1 && <a href={address({ page: String(page - 1) })}>previous</a>}
      <span>
        page {page} of {pages}
      </span>
      {page < pages && <a href={address({ page: String(page + 1) })}>next</a>}
    </p>
  );
