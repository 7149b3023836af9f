import type { Child } from 'hono/jsx';
import type { Document } from '../../model/document.js';
import type { CompareResult } from '../../model/documents/compare.js';
import { changeWords, countWords, letter, notRecorded, sessionLine, statusWords } from '../compare-words.js';
import { formatMs, formatPercent, noValue } from '../format.js';
import { Page } from './page.js';
import { DataTable, FigureText, Notices, Swatch, type Column } from './parts.js';

interface Part {
  id: string;
  title: string;
  columns: Column[];
  rows: Child[][];
}

/** `session compare --html`: one small page, tables only, no script of ours needed to read it. */
export function compareReport(document: Document<CompareResult>): string {
  const { data, issues } = document;
  const parts = [stages(data), classes(data), kernels(data), tiles(data), environment(data)].filter(
    ({ rows }) => rows.length > 0,
  );
  const page = (
    <Page
      title={`${data.sessions.map(({ name, id }) => name ?? id).join(' / ')} · inferscope`}
      contents={[{ id: 'summary', title: 'Summary' }, ...parts]}
      data={document}
      clientScript=""
    >
      <header id="summary">
        <h1>{data.sessions.map(({ name, id }) => name ?? id).join(' → ')}</h1>
        <ul>
          {data.sessions.map((session, i) => (
            <li>
              {sessionLine(session, i)} <small>{session.source}</small>
            </li>
          ))}
        </ul>
        <ul>
          {data.headlines.map(({ text }) => (
            <li>{text}</li>
          ))}
        </ul>
        <Notices issues={issues} />
      </header>
      {parts.map(({ id, title, columns, rows }) => (
        <section id={id} aria-labelledby={`${id}-title`}>
          <h2 id={`${id}-title`}>
            <a href={`#${id}`}>{title}</a>
          </h2>
          <DataTable caption={title} columns={columns} rows={rows} />
        </section>
      ))}
      <footer>
        inferscope {document.tool_version} · changes are against {letter(0)}, of a mean instance; ? marks what
        lies within the 95 % intervals of both · the page holds its data as {document.schema} JSON
      </footer>
    </Page>
  );
  return `<!DOCTYPE html>\n${String(page)}\n`;
}

const numeric = (head: string): Column => ({ head, numeric: true });
const perSession = ({ sessions }: CompareResult): Column[] => sessions.map((_, i) => numeric(letter(i)));
/** The first session has no change against itself. */
const perChange = ({ sessions }: CompareResult): Column[] =>
  sessions.slice(1).map((_, i) => numeric(`${letter(i + 1)} − ${letter(0)}`));

function stages(data: CompareResult): Part {
  const rows = data.stages.flatMap(({ phase, values, changes }): Child[][] => [
    [
      phase,
      'time',
      ...values.map((value) => (value ? <FigureText figure={value.duration_ms} /> : noValue)),
      ...changes.slice(1).map(changeWords),
    ],
    ...(
      [
        ['tok/s', 'tokens_per_s'],
        ['per token', 'ms_per_token'],
        ['MFU', 'mfu'],
      ] as const
    ).flatMap(([label, key]) =>
      values.some((value) => (value?.[key].value ?? null) !== null)
        ? [
            [
              '',
              label,
              ...values.map((value) => (value ? <FigureText figure={value[key]} /> : noValue)),
              ...changes.slice(1).map(() => ''),
            ],
          ]
        : [],
    ),
    ...(['idle_share', 'kernels', 'launches'] as const).flatMap((key) =>
      values.some((value) => value?.[key] !== null && value !== null)
        ? [
            [
              '',
              key.replace('_', ' '),
              ...values.map((value) => {
                const of = value?.[key] ?? null;
                if (of === null) return noValue;
                return key === 'idle_share' ? formatPercent(of) : countWords(of);
              }),
              ...changes.slice(1).map(() => ''),
            ],
          ]
        : [],
    ),
  ]);
  return {
    id: 'stages',
    title: 'Stages, a mean instance',
    columns: [{ head: 'Stage' }, { head: '' }, ...perSession(data), ...perChange(data)],
    rows,
  };
}

function classes(data: CompareResult): Part {
  return {
    id: 'classes',
    title: 'Classes, a mean instance',
    columns: [{ head: 'Phase' }, { head: 'Class' }, ...perSession(data), ...perChange(data)],
    rows: data.classes.map(({ phase, class: opClass, values, changes }) => [
      phase,
      <Swatch class={opClass} />,
      ...values.map((value, i) =>
        value ? `${formatMs(value.ms)} (${countWords(value.count)})` : notRecorded(data.stages, phase, i),
      ),
      ...changes.slice(1).map(changeWords),
    ]),
  };
}

function kernels(data: CompareResult): Part {
  return {
    id: 'kernels',
    title:
      data.what === 'trace' ? 'Kernels by change, a mean instance' : 'Operators by change, a mean instance',
    columns: [
      { head: 'Name' },
      { head: 'Phase' },
      { head: 'Class' },
      ...perSession(data),
      ...perChange(data),
      { head: '' },
    ],
    rows: data.kernels.map(({ name, phase, class: opClass, values, changes, status }) => [
      <code title={name}>{name}</code>,
      phase,
      <Swatch class={opClass} />,
      ...values.map((value) =>
        value ? `${countWords(value.count)} × ${formatMs(value.mean_ns / 1e6)}` : noValue,
      ),
      ...changes.slice(1).map(changeWords),
      statusWords[status],
    ]),
  };
}

function tiles(data: CompareResult): Part {
  return {
    id: 'tiles',
    title: 'GEMM tiles that changed',
    columns: [
      { head: 'Phase' },
      numeric('GEMMs'),
      ...data.sessions.map((_, i) => ({ head: letter(i), wraps: true })),
    ],
    rows: data.gemm_tiles.map(({ phase, count, tiles: own }) => [phase, String(count), ...own]),
  };
}

function environment(data: CompareResult): Part {
  return {
    id: 'environment',
    title: 'What else differs',
    columns: [
      { head: '' },
      { head: 'Part' },
      ...data.sessions.map((_, i) => ({ head: letter(i), wraps: true })),
      { head: 'Could explain', wraps: true },
    ],
    rows: data.environment.map(({ label, part, values, could_explain }) => [
      label,
      part,
      ...values.map((value) => value ?? noValue),
      could_explain ?? '',
    ]),
  };
}
