import { formatCount, formatTimeTick, plural } from '../../vocabulary/format.js';
import type {
  EventsRequest,
  Place,
  SelectedEvents,
  Selection,
  Span,
  TimelineData,
} from '../timeline/shown.js';
import { safeText } from '../../render/safe-text.js';
import { byId, element } from './panel.js';
import type { TimelineSource } from './source.js';

/** Which events of a selection are listed, as stored in the URL. */
type Listed = Pick<EventsRequest, 'group' | 'name' | 'sort' | 'page'>;

interface PanelSource {
  source: TimelineSource;
  timeline: () => Pick<TimelineData, 'tracks' | 'classes' | 'zero'>;
  /** Goes to an event of the list. */
  follow: (place: Place) => void;
  /** Called after another list is shown. */
  changed: () => void;
  failed: (error: unknown) => void;
}

/** @param title shown on hover if the text is not the whole name */
const button = (text: string, act: () => void, title = text): HTMLButtonElement => {
  const made = element(
    'button',
    { type: 'button', ...(title === text ? {} : { title: safeText(title) }) },
    text,
  );
  made.addEventListener('click', act);
  return made;
};

/** The panel of a selected time range: sums by name, and single events of one name or of all, page by page. */
export class SelectionPanel {
  private span: Span | null = null;
  private listed: Listed | null = null;

  constructor(private readonly panel: PanelSource) {}

  /**
   * @param query URL parameters that name the list
   * @returns the listed event if it is the only one
   */
  async show(span: Span, query = new URLSearchParams()): Promise<Place | null> {
    this.clear();
    this.span = span;
    const selection = await this.panel.source.selection(span.start, span.end);
    if (this.span !== span) return null;
    const width = span.end - span.start;
    byId('selection').replaceChildren(
      element('h2', {}, `${formatTimeTick(width, width / 100)} selected`),
      ...(selection.groups.length === 0
        ? [element('p', {}, 'It has no kernels, copies, idle time or API calls.')]
        : []),
      ...this.sums(selection),
      element('div', { id: 'selected' }),
    );
    const [first] = [...selection.groups].sort(
      (a, b) => Number(b.table === 'kernels') - Number(a.table === 'kernels'),
    );
    const group = selection.groups.find(({ id }) => id === query.get('of')) ?? first;
    this.listed = group
      ? {
          group: group.id,
          name: query.get('name'),
          sort: query.get('sort') === 'start' ? 'start' : 'time',
          page: Math.max(1, Math.floor(Number(query.get('page'))) || 1),
        }
      : null;
    const rows = await this.list();
    return rows.length === 1 ? rows[0]! : null;
  }

  clear(): void {
    this.span = this.listed = null;
    byId('selection').replaceChildren();
  }

  /** URL parameters that show the same list again. */
  get state(): [string, string][] {
    if (!this.listed) return [];
    const { group, name, sort, page } = this.listed;
    return [
      ['of', group],
      ...(name === null ? [] : [['name', name] as [string, string]]),
      ['sort', sort],
      ['page', String(page)],
    ];
  }

  /** Shares are of the selected time. Only the first of several ranks is unfolded: a job can have hundreds. */
  private sums({ groups }: Selection): Node[] {
    const ranks = [...new Set(groups.map(({ rank }) => rank))].toSorted((x, y) => (x ?? -1) - (y ?? -1));
    return ranks.map((rank, index) => {
      const tables = this.sumsOf(groups.filter((group) => group.rank === rank));
      return ranks.length === 1
        ? tables
        : element(
            'details',
            index === 0 ? { open: '' } : {},
            element('summary', {}, rank === null ? 'without a rank' : `rank ${rank}`),
            tables,
          );
    });
  }

  private sumsOf(groups: Selection['groups']): HTMLElement {
    const columns = element('div', { class: 'columns' });
    for (const { id: group, table, label, classes, names, others, all } of groups) {
      // The names of idle time are its causes.
      if (table !== 'gaps' && classes.length > 1)
        columns.append(classTable(label, classes, this.panel.timeline().classes[table]!));
      const body = element('tbody');
      const row = (
        name: Node | string,
        { count, text, share }: { count: number; text: string; share: string },
      ) => tr(name, [formatCount(count), text, share]);
      const choose = (text: string, name: string | null): Node =>
        button(text, () => this.choose({ group, name, sort: 'time', page: 1 }), name ?? text);
      if (names.length > 1) body.append(row(choose('all', null), all));
      for (const name of names) body.append(row(choose(name.label || 'without a name', name.name), name));
      if (others) body.append(row(plural(others.names, 'other name'), others));
      // One gap has several causes, so the sum of these counts is not a number of gaps.
      const heads = table === 'gaps' ? ['cause', 'parts of gaps'] : ['name', 'count'];
      columns.append(tableOf(label, [...heads, 'time', 'share'], body));
    }
    return columns;
  }

  private choose(listed: Listed): void {
    this.listed = listed;
    void this.list()
      .then(() => byId('selected').scrollIntoView({ block: 'nearest' }))
      .catch(this.panel.failed);
    this.panel.changed();
  }

  private async list(): Promise<readonly Place[]> {
    const { span, listed } = this;
    if (!span || !listed) return [];
    const found = await this.panel.source.selected({ ...span, ...listed });
    if (this.listed !== listed) return [];
    byId('selected').replaceChildren(...this.events(found, span, listed));
    return found.rows;
  }

  private events(found: SelectedEvents, span: Span, listed: Listed): Node[] {
    const { label, count, text, page, pages, rows } = found;
    const step = Math.max(1, (span.end - span.start) / 10_000);
    const { zero, tracks } = this.panel.timeline();
    const trackOf = (lane: number): string =>
      tracks.find(({ firstLane, lanes }) => lane >= firstLane && lane < firstLane + lanes)?.label ?? '';
    const body = element('tbody');
    for (const { lane, index, label: name, start, duration, text: part } of rows)
      body.append(
        tr(
          button(name || 'without a name', () => this.panel.follow({ lane, index })),
          [formatTimeTick(zero + start, step), duration, part],
          trackOf(lane),
        ),
      );
    const sortButton = (sort: Listed['sort'], text: string): Node =>
      button(text, () => this.choose({ ...listed, sort, page: 1 }));
    const table = tableOf(
      `Single events: ${label}${listed.name === null ? '' : `, ${rows[0]?.label ?? listed.name}`}`,
      ['name', sortButton('start', 'start'), 'duration', sortButton('time', 'inside the selection'), 'track'],
      body,
    );
    // On a narrow screen each row becomes a list in which every value has its column name.
    table.querySelector('table')!.className = 'stacks';
    const heads = table.querySelectorAll('th');
    for (const row of table.querySelectorAll('tbody tr'))
      for (const [index, cell] of [...row.children].entries())
        cell.setAttribute('data-head', heads[index]!.textContent ?? '');
    heads[listed.sort === 'start' ? 1 : 3]!.setAttribute(
      'aria-sort',
      listed.sort === 'start' ? 'ascending' : 'descending',
    );
    const pageButton = (text: string, to: number): Node[] =>
      to < 1 || to > pages ? [] : [button(text, () => this.choose({ ...listed, page: to }))];
    return [
      table,
      element(
        'p',
        { class: 'tools', id: 'selected-pages' },
        ...pageButton('previous', page - 1),
        `${plural(count, 'event')}, ${text} inside the selection${pages > 1 ? `, page ${page} of ${formatCount(pages)}` : ''}`,
        ...pageButton('next', page + 1),
      ),
    ];
  }
}

function classTable(
  label: string,
  classes: Selection['groups'][number]['classes'],
  looks: TimelineData['classes'][string],
): HTMLElement {
  const body = element('tbody');
  for (const { id, text, share } of classes) {
    const { label: name, color } = looks.find((look) => look.id === id)!;
    const swatch = element('span', { class: 'swatch', style: `background:${color}` });
    body.append(tr(element('span', {}, swatch, name), [text, share]));
  }
  return tableOf(`${label}, by class`, ['class', 'time', 'share'], body);
}

/** A table row: a name, numbers and an optional note. */
const tr = (name: Node | string, numbers: readonly string[], after?: string): HTMLElement =>
  element(
    'tr',
    {},
    element('td', { class: 'wraps name' }, name),
    ...numbers.map((text) => element('td', { class: 'number' }, text)),
    ...(after === undefined ? [] : [element('td', {}, after)]),
  );

function tableOf(caption: string, heads: readonly (Node | string)[], body: HTMLElement): HTMLElement {
  const head = element('tr');
  for (const [index, text] of heads.entries())
    head.append(
      element('th', { scope: 'col', ...(index > 0 && index < 4 ? { class: 'number' } : {}) }, text),
    );
  return element(
    'div',
    { class: 'scroll' },
    element('table', {}, element('caption', {}, caption), element('thead', {}, head), body),
  );
}
