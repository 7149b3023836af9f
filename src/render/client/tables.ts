type Order = 'ascending' | 'descending';

const keyOf = (row: HTMLTableRowElement, column: number): string =>
  row.cells[column]?.dataset['sort'] ?? row.cells[column]?.textContent ?? '';

/** Numbers by size, texts by alphabet. */
function compareKeys(a: string, b: string): number {
  const [x, y] = [Number(a), Number(b)];
  if (a !== '' && b !== '' && !Number.isNaN(x) && !Number.isNaN(y)) return x - y;
  return a.localeCompare(b, 'en');
}

function sortBy(table: HTMLTableElement, column: number, head: HTMLTableCellElement): void {
  const body = table.tBodies[0];
  if (!body) return;
  const numeric = head.classList.contains('number');
  const previous = head.getAttribute('aria-sort');
  // The first click sorts numbers from the largest, names from A.
  const order: Order = (previous === null ? numeric : previous === 'ascending') ? 'descending' : 'ascending';
  for (const header of table.tHead?.rows[0]?.cells ?? []) header.removeAttribute('aria-sort');
  head.setAttribute('aria-sort', order);
  const sign = order === 'ascending' ? 1 : -1;
  const rows = [...body.rows].sort((a, b) => sign * compareKeys(keyOf(a, column), keyOf(b, column)));
  body.append(...rows);
}

function addFilter(table: HTMLTableElement): void {
  const document = table.ownerDocument;
  const label = document.createElement('label');
  label.className = 'filter';
  const input = document.createElement('input');
  const status = document.createElement('span');
  input.type = 'search';
  label.append('Filter ', input, status);
  const rows = [...(table.tBodies[0]?.rows ?? [])];
  status.setAttribute('role', 'status');
  input.addEventListener('input', () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const text =
        `${row.textContent ?? ''} ${row.querySelector('[title]')?.getAttribute('title') ?? ''}`.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      if (!row.hidden) count++;
    }
    status.textContent = words.length === 0 ? '' : `${count} of ${rows.length}`;
  });
  const box = table.parentElement;
  const all = box?.previousElementSibling;
  // The checkbox for all columns stays next to the table.
  (all?.classList.contains('all-columns') ? all : box)?.before(label);
}

/** Adds sort buttons to tables with `data-sortable` and a filter field to those with `data-filter`. */
export function sortTables(document: Document): void {
  for (const table of document.querySelectorAll<HTMLTableElement>('table[data-sortable]')) {
    for (const [column, head] of [...(table.tHead?.rows[0]?.cells ?? [])].entries()) {
      if (head.textContent === '') continue;
      const button = document.createElement('button');
      button.type = 'button';
      button.append(...head.childNodes);
      button.addEventListener('click', () => sortBy(table, column, head));
      head.append(button);
    }
    if (table.hasAttribute('data-filter')) addFilter(table);
  }
}

/** A table with at least this many columns does not fit a phone. */
const stackedColumns = 4;

/** Adds the column name to cells of wide tables, which a narrow page shows next to the value. */
export function labelCells(document: Document): void {
  for (const table of document.querySelectorAll<HTMLTableElement>('.scroll > table')) {
    const heads = [...(table.tHead?.rows[0]?.cells ?? [])].map(({ textContent }) => textContent ?? '');
    if (heads.length < stackedColumns) continue;
    table.classList.add('stacks');
    for (const row of table.tBodies[0]?.rows ?? [])
      for (const [column, cell] of [...row.cells].entries()) cell.dataset['head'] = heads[column] ?? '';
  }
}

const overflows = ({ parentElement: box }: HTMLTableElement): boolean => box!.scrollWidth > box!.clientWidth;

/**
 * Wraps the cells of a wide table that does not fit its box, and shows its rows as lists if that is not enough; folded ones are checked
 * when they open.
 */
export function fitTables(document: Document): void {
  const fit = () => {
    const tables = [...document.querySelectorAll<HTMLTableElement>('.scroll > table.stacks')];
    for (const table of tables) table.classList.remove('breaks', 'lists');
    const wide = tables.filter(
      (table) =>
        overflows(table) &&
        // With all columns switched on, they stay next to each other.
        !table.parentElement!.previousElementSibling?.matches('.all-columns:has(:checked)'),
    );
    for (const table of wide) table.classList.add('breaks');
    for (const table of wide.filter(overflows)) table.classList.replace('breaks', 'lists');
  };
  fit();
  document.defaultView?.addEventListener('resize', fit);
  // `toggle` does not bubble, so listen in the capture phase.
  document.addEventListener('toggle', fit, true);
  document.addEventListener('change', fit, true);
}
