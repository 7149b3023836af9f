import type { TraceResult } from '../model/documents/trace.js';
import type { Drift } from '../model/documents/trace-drift.js';
import { phaseLabel } from '../vocabulary/stages.js';
import type { Block, Section, Text } from './block.js';
import { tableOf } from './table-of.js';
import { countValue, ns, number, ratio } from './trace-values.js';

const comparedWith: Record<Drift['matched_by'], string> = {
  position: 'same position in other requests',
  batch: 'the same batch size',
  kind: 'same kind',
};

/** Whether steps became slower over the run; null if there are no comparable steps. */
export function driftSection({ drift = [] }: TraceResult): Section | null {
  const comparable = drift.filter(({ steps }) => steps > 0);
  if (comparable.length === 0) return null;
  return {
    id: 'drift',
    title: 'Step time over the run',
    level: 2,
    blocks: [
      tableOf(
        'From start to end of the run',
        [
          { id: 'phase', head: 'stage', cell: ({ kind }) => phaseLabel(kind) },
          { id: 'steps', head: 'steps', ...number, cell: ({ steps }) => countValue(steps) },
          { id: 'span_ns', head: 'over', ...number, cell: ({ span_ns: span }) => ns(span) },
          {
            id: 'change',
            head: 'change over the run',
            ...number,
            cell: ({ change }) => ({ figure: change }),
          },
          { id: 'verdict', head: 'trend', wraps: true, cell: verdict },
          {
            id: 'alike',
            head: 'compared with steps of',
            drop: 0,
            cell: (row) => comparedWith[row.matched_by],
          },
        ],
        comparable,
      ),
      ...comparable.filter(({ change }) => change.value !== null).map(tenthsFold),
    ],
  };
}

function verdict({ change }: Drift): Text {
  if (change.value === null || !change.ci95)
    return { missing: change.value === null ? change.reason.text : 'one step' };
  const [low, high] = change.ci95;
  if (low > 0) return 'slower';
  return high < 0 ? 'faster' : 'no significant trend';
}

const tenthsFold = ({ kind, parts: tenths }: Drift): Block => ({
  type: 'fold',
  level: 3,
  title: `Tenths of the run: ${phaseLabel(kind)}`,
  blocks: [
    tableOf(
      'Median time relative to comparable steps',
      [
        { id: 'from_ns', head: 'from', ...number, cell: ({ from_ns: from }) => ns(from) },
        { id: 'steps', head: 'steps', ...number, cell: ({ steps }) => countValue(steps) },
        {
          id: 'relative',
          head: 'relative time',
          ...number,
          cell: ({ relative }) =>
            relative === null ? { missing: 'no step started there' } : ratio(relative),
        },
      ],
      tenths,
    ),
  ],
});
