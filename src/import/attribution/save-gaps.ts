import { gapParts } from '../../model/bars.js';
import type { Columns, Workbench } from '../../model/workbench.js';
import type { ImportContext } from '../importer.js';
import { type GapTimes, splitGaps } from './gap-parts.js';
import { saveScanned } from './save-scanned.js';
import type { GapLatency } from './launch-latency.js';
import { type Slice, readSlices, inSlice } from './slices.js';

const gapColumns = [
  'start_ns',
  'dur_ns',
  'pid',
  'tid',
  'rank',
  'device',
  'context',
  'stage_id',
  'correlation',
];
const partColumns = gapParts.map((part) => `${part}_ns`);

/** Idle intervals of the devices, with their parts. Needs attr_gaps, attr_kernels and attr_copies. */
export async function saveGaps(
  workbench: Workbench,
  context: ImportContext,
  latency: GapLatency,
): Promise<void> {
  const kernels = await readSlices(workbench, 'attr_gaps', 'CASE WHEN activity >= 0 THEN activity END');
  const copies = await readSlices(workbench, 'attr_gaps', 'CASE WHEN activity < 0 THEN -1 - activity END');
  await saveScanned(
    workbench,
    context,
    'gaps',
    {
      ...Object.fromEntries(gapColumns.map((column) => [column, { sql: column }])),
      before_op_id: { sql: 'op_id' },
      ...Object.fromEntries(partColumns.map((column) => [column, {}])),
      cause: { texts: gapParts },
    },
    kernels.map((slice, number) => `(${gapsSql(slice, copies[number]!)})`),
    {
      names: ['called_ns', 'returned_ns', 'waiting_ns', 'in_graph'],
      fill(rows, columns) {
        const parts = partColumns.map((name) => (columns[name] = new Float64Array(rows)));
        columns['cause'] = new Float64Array(rows);
        splitGaps(rows, columns as Columns & GapTimes, latency, parts, columns['cause']);
      },
    },
  );
}

function gapsSql(kernels: Slice, copies: Slice): string {
  const from = (table: string, slice: Slice, activity: string) => `
    SELECT g.idle_ns::BIGINT AS start_ns, k.start_ns - g.idle_ns::BIGINT AS dur_ns, g.waiting_ns, g.in_graph,
      k.api_start_ns AS called_ns, k.api_start_ns + k.api_dur_ns AS returned_ns,
      k.pid, k.tid, k.rank, k.device, k.context, k.stage_id, k.op_id, k.correlation
    FROM (SELECT * FROM attr_gaps WHERE ${slice.rows}) g
    JOIN (SELECT * FROM ${table} WHERE ${inSlice('activity', slice)}) k ON k.activity = ${activity}`;
  return `${from('attr_kernels', kernels, 'g.activity')} UNION ALL ${from('attr_copies', copies, '-1 - g.activity')}`;
}
