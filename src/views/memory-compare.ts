import type { Document } from '../model/document.js';
import type { MemoryChange, MemoryCompareResult, MemorySide } from '../model/documents/memory-compare.js';
import { componentLabels } from '../vocabulary/memory-components.js';
import { memoryLatencyLabels, pointLabels } from '../vocabulary/memory-points.js';
import type { Block, Column, Section, Table, Text, View } from './block.js';

type Latency = MemoryCompareResult['latency'][number];

/** Two memory profiles, the second against the first: components first, since they explain the change. */
export function memoryCompareView(document: Document<MemoryCompareResult>): View {
  const { data, issues } = document;
  return {
    command: 'memory compare',
    title: `${data.base.label} → ${data.now.label}`,
    document,
    session: { id: null, started_at: data.now.timestamp ?? '' },
    lead: [
      {
        type: 'facts',
        items: [
          { name: 'base', text: sideText(data.base) },
          { name: 'new', text: sideText(data.now) },
          { name: 'differs', text: differingText(data) },
        ],
      },
      { type: 'notes', items: data.headlines },
      { type: 'issues', issues },
    ],
    sections: [
      section('components', 'Components at the peak', [
        changeTable(
          data.components.map((row) => ({
            label: labelOf(row.name, componentLabels),
            row,
            more: [confidenceText(row)],
          })),
          [{ id: 'confidence', head: 'confidence', drop: 0 }],
        ),
      ]),
      section(
        'points',
        'Points',
        [changeTable(data.points.map((row) => ({ label: labelOf(row.name, pointLabels), row })))],
        2,
      ),
      ...(data.gpus.length > 1
        ? [
            section(
              'gpus',
              'Peak of each GPU',
              [changeTable(data.gpus.map((row) => ({ label: row.name, row })))],
              2,
            ),
          ]
        : []),
      ...(data.latency.length > 0 ? [section('latency', 'Latency', [latencyTable(data.latency)], 2)] : []),
      section('differences', 'Differences in configuration', [differences(data)], 2),
    ],
  };
}

const section = (id: string, title: string, blocks: Block[], level: 1 | 2 = 1): Section => ({
  id,
  title,
  level,
  blocks,
});

const sideText = ({ label, model, engine, status }: MemorySide): string =>
  [label, model, engine, status === 'partial' ? 'partial' : null].filter((part) => part !== null).join(' · ');

/** Maximum labels in a summary; the table has the values. */
const maxLabels = 5;

function differingText({ differences: rows }: MemoryCompareResult): Text {
  if (rows.length === 0) return 'no difference in the configurations';
  const more = rows.length > maxLabels ? `, and ${rows.length - maxLabels} more` : '';
  return `${rows
    .slice(0, maxLabels)
    .map(({ label }) => label)
    .join(', ')}${more}`;
}

/** Names of other tools are shown unchanged. */
const labelOf = (name: string, labels: Readonly<Record<string, string>>): string =>
  labels[name] ?? name.replaceAll('_', ' ');

const changeColumns: readonly Column[] = [
  { id: 'base', head: 'base', numeric: true },
  { id: 'new', head: 'new', numeric: true },
  { id: 'change', head: 'change', numeric: true },
  { id: 'change_share', head: '%', numeric: true },
];

const memory = (gb: number | null, missing: string | null, signed = false): Text =>
  gb === null
    ? { missing: missing ?? 'not in the profile' }
    : { n: gb, unit: 'GB', digits: signed ? 3 : 4, signed };

const share = (n: number | null, missing: string | null): Text =>
  n === null ? { missing: missing ?? 'the base is 0' } : { n, unit: 'ratio', signed: true };

function changeTable(
  all: readonly { label: string; row: MemoryChange; more?: Text[] }[],
  columns: readonly Column[] = [],
): Table {
  return {
    type: 'table',
    title: 'Second profile compared with the first',
    reasons: true,
    columns: [{ id: 'name', head: '', wraps: true }, ...changeColumns, ...columns],
    rows: all.map(({ label, row: { base_gb, now_gb, change_gb, change_share, missing }, more = [] }) => ({
      cells: [
        label,
        memory(base_gb, missing),
        memory(now_gb, missing),
        memory(change_gb, missing, true),
        share(change_share, missing),
        ...more,
      ],
    })),
  };
}

function confidenceText({
  base_confidence: base,
  now_confidence: now,
}: MemoryCompareResult['components'][number]): Text {
  if (base === now) return base ?? { missing: 'not in the profiles' };
  return [base ?? { missing: 'not in the first profile' }, ' → ', now ?? { missing: 'not in the second' }];
}

const latencyTable = (latency: readonly Latency[]): Table => ({
  type: 'table',
  title: 'Latency',
  reasons: true,
  columns: [{ id: 'name', head: '', wraps: true }, ...changeColumns],
  rows: latency.map(({ name, unit, base, now, change_share }) => {
    const quantity = (n: number | null, signed = false): Text =>
      n === null ? { missing: 'a profile does not have it' } : { n, unit, signed };
    return {
      cells: [
        labelOf(name, memoryLatencyLabels),
        quantity(base),
        quantity(now),
        quantity(base === null || now === null ? null : now - base, true),
        share(change_share, base === null || now === null ? 'a profile does not have it' : null),
      ],
    };
  }),
});

function differences({ differences: rows }: MemoryCompareResult): Block {
  if (rows.length === 0) return { type: 'text', text: 'The configurations are the same.' };
  const side = (text: string | null): Text => text ?? { missing: 'not in the profile' };
  return {
    type: 'table',
    title: 'Configuration, dtypes, engine and machine',
    reasons: true,
    columns: [
      { id: 'name', head: '' },
      { id: 'base', head: 'base', wraps: true },
      { id: 'new', head: 'new', wraps: true },
    ],
    rows: rows.map(({ label, base, now }) => ({ cells: [label, side(base), side(now)] })),
  };
}
