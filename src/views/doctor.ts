import type { Document } from '../model/document.js';
import {
  type DoctorData,
  type DoctorGroup,
  doctorGroups,
  type DoctorRow,
} from '../model/documents/doctor.js';
import type { Text, Value, View } from './block.js';

const groupTitles: Readonly<Record<DoctorGroup, string>> = {
  machine: 'This machine',
  nvidia: 'NVIDIA',
  python: 'Python',
  containers: 'Containers',
  amd: 'AMD',
  jobs: 'Jobs of many ranks',
};

const statuses: Readonly<Record<DoctorRow['status'], Value>> = {
  ok: { text: 'ok', tone: 'strong' },
  warning: { text: 'warning', tone: 'fault' },
  missing: { text: 'missing', tone: 'fault' },
  not_applicable: { text: '-', tone: 'dim' },
};

/** Findings by group, each fix below the finding. */
export function doctorView(document: Document<DoctorData>): View {
  const { rows, summary, ok } = document.data;
  const failed = rows.filter((row) => row.required && row.status !== 'ok').map(({ id }) => id);
  return {
    command: 'doctor',
    title: ok ? 'ready' : 'not ready',
    document,
    session: { id: null, started_at: '' },
    lead: [],
    sections: [
      ...doctorGroups
        .map((group) => ({ group, groupRows: rows.filter((row) => row.group === group) }))
        .filter(({ groupRows }) => groupRows.length > 0)
        .map(({ group, groupRows }) => ({
          id: group,
          title: groupTitles[group],
          blocks: [{ type: 'facts' as const, items: mergedRows(groupRows).flatMap(factsOf) }],
        })),
      {
        id: 'summary',
        title: 'What it can do',
        blocks: [
          { type: 'text', text: `${summary}.` },
          ...(failed.length > 0
            ? [{ type: 'text' as const, text: `Required and not ok (!): ${failed.join(', ')}.` }]
            : []),
        ],
      },
    ],
  };
}

/** Longer names would leave no room for the column next to them. */
const maxNameLength = 36;

/** Optional rows that do not apply for the same reason become one, at the place of the first, as far as their names fit. */
function mergedRows(rows: readonly DoctorRow[]): DoctorRow[] {
  const merges = (row: DoctorRow) => row.status === 'not_applicable' && !row.required;
  const merged: DoctorRow[] = [];
  for (const row of rows) {
    const index = merged.findLastIndex((earlier) => merges(earlier) && earlier.found === row.found);
    const label = index < 0 || !merges(row) ? '' : `${merged[index]!.label}, ${row.label}`;
    if (label === '' || label.length > maxNameLength) merged.push(row);
    else merged[index] = { ...merged[index]!, label };
  }
  return merged;
}

function factsOf(row: DoctorRow): { name: string; text: Text }[] {
  const mark = row.required && row.status !== 'ok' ? '!' : ' ';
  const failing = row.status !== 'ok' && (row.status !== 'not_applicable' || row.required);
  return [
    {
      name: `${mark} ${row.label}`,
      text: [statuses[row.status], ['missing', 'warning'].includes(row.status) ? ': ' : ' ', row.found],
    },
    ...(failing && row.fix ? [{ name: '', text: ['→ ', { text: row.fix, tone: 'dim' as const }] }] : []),
  ];
}
