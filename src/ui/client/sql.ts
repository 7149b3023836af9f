import { csvField } from '../../model/csv-field.js';
import { safeText } from '../../render/safe-text.js';
import { plural } from '../../vocabulary/format.js';
import { fetchJson } from './fetch.js';
import { element } from './panel.js';
import { sqlEditor, type TableDescribed } from './sql-editor.js';

interface Result {
  columns: { name: string; type: string }[];
  rows: (string | number | boolean | null)[][];
  truncated: boolean;
}

const { api = '', query = '' } = document.body.dataset;
const form = document.querySelector<HTMLFormElement>('#query')!;
const answer = document.querySelector<HTMLElement>('#answer')!;
const answered = document.querySelector<HTMLElement>('#answered')!;
const save = document.querySelector<HTMLButtonElement>('#csv')!;
const maxRows = 1000;
let result: Result | null = null;

const editor = sqlEditor(
  document.querySelector('#editor')!,
  new URLSearchParams(location.search).get('q') ?? query,
  JSON.parse(document.querySelector('#schema')!.textContent ?? '[]') as TableDescribed[],
  () => void ask(),
);

/** Longer cells may be cut, so they show their text on hover. */
const hintLength = 20;

async function ask(): Promise<void> {
  answered.textContent = 'running …';
  save.disabled = true;
  answer.replaceChildren();
  const text = encodeURIComponent(editor.text());
  history.replaceState(null, '', `?q=${text}`);
  try {
    result = await fetchJson<Result>(`${api}/sql?q=${text}`);
    const { columns, rows, truncated } = result;
    answered.textContent = `${plural(rows.length, 'row')}${truncated ? ', more were left out' : ''}${rows.length > maxRows ? `, ${maxRows} shown` : ''}`;
    const numeric = columns.map(({ type }) => /INT|DOUBLE|FLOAT|DECIMAL/.test(type));
    const row = (cells: (Node | string)[], tag: 'td' | 'th'): HTMLElement =>
      element(
        'tr',
        {},
        ...cells.map((cell, i) =>
          element(
            tag,
            {
              ...(numeric[i] ? { class: 'number' } : {}),
              ...(typeof cell === 'string' && cell.length > hintLength ? { title: safeText(cell) } : {}),
            },
            cell,
          ),
        ),
      );
    answer.append(
      element(
        'table',
        {},
        element(
          'thead',
          {},
          row(
            columns.map(({ name }) => name),
            'th',
          ),
        ),
        element('tbody', {}, ...rows.slice(0, maxRows).map((cells) => row(cells.map(cellText), 'td'))),
      ),
    );
    save.disabled = false;
  } catch (error) {
    answered.textContent = '';
    answer.append(
      element('p', { class: 'fault', role: 'alert' }, error instanceof Error ? error.message : String(error)),
    );
  }
}

const cellText = (value: string | number | boolean | null): string =>
  value === null ? 'null' : String(value);

save.addEventListener('click', () => {
  if (!result) return;
  const lines = [result.columns.map(({ name }) => name), ...result.rows].map((cells) =>
    cells.map(csvField).join(','),
  );
  const url = URL.createObjectURL(new Blob([`${lines.join('\r\n')}\r\n`], { type: 'text/csv' }));
  element('a', { href: url, download: 'inferscope.csv' }).click();
  URL.revokeObjectURL(url);
});
form.addEventListener('submit', (submit) => {
  submit.preventDefault();
  void ask();
});
void ask();
