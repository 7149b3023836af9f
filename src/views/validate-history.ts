import type { Document } from '../model/document.js';
import type { ValidationHistory } from '../model/documents/validate.js';
import { componentLabels } from '../vocabulary/memory-components.js';
import type { Column, Text, View } from './block.js';
import { signedShare } from './validate.js';
import { plural } from '../vocabulary/format.js';

/** Components with a column of their own; the document has all. */
const components = ['kv_cache', 'activations'] as const;

/** Errors of the calculator over sessions of `validate`, oldest first. */
export function validateHistoryView(document: Document<ValidationHistory>): View {
  const { sessions } = document.data;
  const [before, last] = sessions.slice(-2).map(({ total }) => total.mean_absolute_share);
  const trend: Text =
    typeof before === 'number' && typeof last === 'number'
      ? [
          'Mean error of the total: ',
          { n: before, unit: 'ratio' },
          ' before, ',
          { n: last, unit: 'ratio' },
          ' now.',
        ]
      : 'A trend needs two sessions: run inferscope validate again after a change.';
  return {
    command: 'validate',
    title: `${plural(sessions.length, 'session')}, oldest first`,
    document,
    session: { id: null, started_at: sessions.at(-1)?.started_at ?? '' },
    lead: [
      {
        type: 'table',
        title: 'Errors of the total, estimated − measured, and of two components',
        columns: [
          { id: 'session', head: 'session' },
          { id: 'compared', head: 'n', numeric: true },
          { id: 'mean_share', head: 'bias', numeric: true },
          { id: 'mean_absolute_share', head: 'mean error', numeric: true },
          { id: 'worst_share', head: 'worst', numeric: true },
          ...components.map((id, drop): Column => ({ id, head: componentLabels[id], numeric: true, drop })),
          { id: 'result', head: 'result' },
        ],
        rows: sessions.map(({ id, counts, total, result, components: all }) => ({
          cells: [
            id,
            { count: counts.compared },
            signedShare(total.mean_share),
            total.mean_absolute_share === null
              ? { missing: 'nothing was compared' }
              : { n: total.mean_absolute_share, unit: 'ratio' },
            signedShare(total.worst_share),
            ...components.map((name) =>
              signedShare(all.find(({ component }) => component === name)?.mean_share ?? null),
            ),
            result.replace('_', ' '),
          ],
        })),
      },
      { type: 'text', text: trend },
    ],
    sections: [],
  };
}
