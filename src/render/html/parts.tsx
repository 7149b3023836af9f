import { raw } from 'hono/html';
import type { Child, FC, PropsWithChildren } from 'hono/jsx';
import type { Issue } from '../../model/document.js';
import type { Figure } from '../../model/figure.js';
import { figureParts, isOverRoof, noValue, keepUnits } from '../../vocabulary/format.js';
import type { Chart } from '../../views/chart.js';
import { heightOf, keyOf, zooms } from '../charts/option.js';
import { timesOf } from '../notices.js';
import { inlineJson } from './inline.js';
import { Key } from './line-key.js';

/** A figure with unit and spread; if missing, its reason on hover (and in a note below its table). */
export const FigureText: FC<{ figure: Figure; utilization?: boolean }> = ({
  figure,
  utilization = false,
}) => {
  const { text, unit, spread, reason } = figureParts(figure);
  if (reason !== null) return <Missing reason={reason} />;
  return (
    <span class="figure" {...(figure.value === null ? {} : { title: figure.source })}>
      {text}
      {unit && <span class="unit">&nbsp;{unit}</span>}
      {spread && <span class="spread"> {keepUnits(spread)}</span>}
      {utilization && isOverRoof(figure) && <span class="fault"> invalid</span>}
    </span>
  );
};

export const Missing: FC<{ reason: string }> = ({ reason }) => (
  <span class="missing" title={reason}>
    <span aria-hidden="true">{noValue}</span>
    <span class="unseen">missing: {reason}</span>
  </span>
);

interface Column {
  head: Child;
  /** Right-aligned, so that digits align. */
  numeric?: boolean;
  /** May wrap; other columns stay on one line. */
  wraps?: boolean;
  /** Hidden until the box above the table shows all columns. */
  detail?: boolean;
}

interface TableProps {
  caption: string;
  /** Whether a heading above has the same text: the caption is then only for screen readers. */
  repeatsHeading?: boolean;
  columns: Column[];
  rows: Child[][];
  class?: string;
  /** Sort key of each cell; the page's script then makes the heads buttons. */
  sortKeys?: (string | number | null)[][];
  /** Adds a field that filters the rows. */
  filter?: boolean;
}

/**
 * A table that scrolls inside its box and is reachable by keyboard. On a phone the page's script shows each row of a wide table as a list.
 */
export const DataTable: FC<TableProps> = ({
  caption,
  repeatsHeading = false,
  columns,
  rows,
  class: extra = '',
  sortKeys,
  filter = false,
}) => (
  <>
    {columns.some(({ detail }) => detail) && (
      <label class="all-columns">
        <input type="checkbox" /> All columns
      </label>
    )}
    <div class="scroll" role="group" aria-label={caption} tabindex={0}>
      <table
        class={extra}
        {...(sortKeys ? { 'data-sortable': '' } : {})}
        {...(filter ? { 'data-filter': '' } : {})}
      >
        <caption {...(repeatsHeading ? { class: 'unseen' } : {})}>{caption}</caption>
        {columns.some(({ head }) => head !== '') && (
          <thead>
            <tr>
              {columns.map((column) =>
                column.head === '' ? (
                  <td class={cellClass(column)} />
                ) : (
                  <th scope="col" class={cellClass(column)}>
                    {column.head}
                  </th>
                ),
              )}
            </tr>
          </thead>
        )}
        <tbody>
          {rows.map((cells, row) => (
            <tr>
              {cells.map((cell, index) => (
                <td
                  class={cellClass(columns[index])}
                  {...(sortKeys ? { 'data-sort': sortKeys[row]?.[index] ?? '' } : {})}
                >
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  </>
);

function cellClass(column: Column | undefined): string {
  return [column?.numeric ? 'number' : '', column?.wraps ? 'wraps' : '', column?.detail ? 'detail' : '']
    .filter(Boolean)
    .join(' ');
}

/** A chart's key, its box, and the data from which the page's script draws it. */
export const ChartFrame: FC<PropsWithChildren<{ chart: Chart; label: string }>> = ({
  chart,
  label,
  children,
}) => (
  <>
    <Key label={label} entries={keyOf(chart)} />
    <figure>
      <div
        class="chart"
        data-chart={chart.form}
        role="img"
        aria-label={label}
        style={`height:${heightOf(chart)}px`}
        {...(zooms(chart) ? { tabindex: 0 } : {})}
      />
      <script type="application/json">{raw(inlineJson(chart))}</script>
      {zooms(chart) && (
        <p class="hint">
          Zoom: drag the slider, Ctrl + wheel, or focus the chart and press <kbd>+</kbd> <kbd>−</kbd>{' '}
          <kbd>0</kbd> or the arrow keys.
        </p>
      )}
      {children && <Behind title="Table behind this chart">{children}</Behind>}
    </figure>
  </>
);

export const Behind: FC<PropsWithChildren<{ title: string }>> = ({ title, children }) => (
  <details>
    <summary>{title}</summary>
    {children}
  </details>
);

export const Notice: FC<{ issue: Issue }> = ({ issue }) => (
  <li class={`notice ${issue.severity}`}>
    <strong>{issue.severity}</strong> {issue.text}{' '}
    <code>
      {issue.code}
      {timesOf(issue) && ` ${timesOf(issue)}`}
    </code>
  </li>
);

/** A part of the session that is absent: what is missing, and why. */
export const Absent: FC<{ what: string; why: string }> = ({ what, why }) => (
  <div class="absent">
    <p>
      <strong>{what}</strong> {why}
    </p>
  </div>
);
