import type { Document } from '../model/document.js';
import type { ValidationHistory } from '../model/documents/validate.js';
import { componentLabels } from '../vocabulary/memory-components.js';
import type { Column, Text, View } from './block.js';
import { signedShare } from './validate.js';
import { plural } from '../vocabulary/format.js';

/** Components with a column of their own; the document has all. */
const components = ['kv_cache', 'activations'] as const;

const compared = (n: number | null, text: (n: number) => Text): Text =>
  n === null ? { missing: 'nothing was compared' } : text(n);

/** Errors of the calculator over sessions of `validate`, oldest first. */
export function validateHistoryView(document: Document<ValidationHistory>): View {
  const { sessions, trend } = document.data;
  const change: Text = trend
    ? [
        'Mean error of the total over the ',
        { count: trend.profiles, unit: 'profiles' },
        ' of both: ',
        { n: trend.mean_absolute_share_before, unit: 'ratio' },
        ` in ${trend.before}, `,
        { n: trend.mean_absolute_share_now, unit: 'ratio' },
        ` in ${trend.now}.`,
      ]
    : 'A trend needs two sessions that compared the same profiles: run inferscope validate on them again after a change.';
  return {
    command: 'validate',
    title: `${plural(sessions.length, 'session')}, oldest first`,
    document,
    session: { id: null, started_at: sessions.at(-1)?.started_at ?? '' },
    lead: [
      {
        type: 'table',
        title: 'Errors of the total, estimated − measured, and of two components',
        reasons: true,
        columns: [
          { id: 'session', head: 'session' },
          { id: 'compared', head: 'n', numeric: true },
          { id: 'mean_share', head: 'bias', numeric: true },
          { id: 'mean_absolute_share', head: 'mean error', numeric: true },
          { id: 'worst_share', head: 'worst', numeric: true },
          ...components.map((id, drop): Column => ({ id, head: componentLabels[id], numeric: true, drop })),
          { id: 'tolerance', head: 'tolerance', numeric: true, drop: components.length },
          { id: 'result', head: 'result' },
        ],
        rows: sessions.map(({ id, counts, total, tolerance, result, components: all }) => ({
          cells: [
            id,
            { count: counts.compared },
            compared(total.mean_share, signedShare),
            compared(total.mean_absolute_share, (n) => ({ n, unit: 'ratio' })),
            compared(total.worst_share, signedShare),
            ...components.map((name) => {
              const component = all.find((candidate) => candidate.component === name);
              return compared(component?.mean_share ?? null, signedShare);
            }),
            { n: tolerance, unit: 'ratio' },
            result.replace('_', ' '),
          ],
        })),
      },
      { type: 'text', text: change },
    ],
    sections: [],
  };
}
