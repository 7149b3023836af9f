import type { KernelStep, KernelsResult } from '../model/documents/kernels.js';
import { caseText, stepLabel } from '../vocabulary/kernel-cases.js';
import type { Block, Section, Table, Text } from './block.js';

/** Sums of the operations of a model's steps. */
export function stepSections({ steps, model }: KernelsResult): Section[] {
  if (steps.length === 0) return [];
  const first = steps.find(({ phase }) => phase === 'decode');
  return [
    {
      id: 'steps',
      title: 'Steps of the model',
      blocks: [
        {
          type: 'text',
          text: `Each operation of ${model?.name ?? 'the model'} was measured once and multiplied by its count per step: sequential, without host time, launch gaps or overlap.`,
        },
        stepTable(steps),
        ...(first
          ? [
              { type: 'heading', text: stepLabel(first) } satisfies Block,
              { ...operationTable(first), brief: 8 },
            ]
          : []),
        ...steps
          .filter((step) => step !== first)
          .map((step): Block => ({
            type: 'fold',
            level: 2,
            title: stepLabel(step),
            blocks: [operationTable(step)],
          })),
        { type: 'facts', items: notMeasured(steps) },
      ],
    },
  ];
}

const unknown: Text = { missing: 'parts were not measured' };
export const noRoof: Text = { missing: 'the roof is not known' };
const share = (part: number | null, total: number | null, without: Text = unknown): Text =>
  part === null || total === null ? without : { n: part / total, unit: 'ratio' };
const ns = (n: number | null): Text => (n === null ? { missing: 'not measured' } : { n, unit: 'ns' });

const stepTable = (steps: readonly KernelStep[]): Table => ({
  type: 'table',
  title: 'Steps; operations: measured / all',
  reasons: true,
  columns: [
    { id: 'step', head: 'step', wraps: true },
    { id: 'measured_ns', head: 'measured', numeric: true },
    { id: 'roof_ns', head: 'roof', numeric: true },
    { id: 'roof_share', head: 'of roof', numeric: true },
    { id: 'operations_measured', head: 'operations', numeric: true },
  ],
  rows: steps.map((step) => ({
    cells: [
      stepLabel(step),
      { figure: step.measured_ns },
      { figure: step.roof_ns },
      share(step.roof_ns.value, step.measured_ns.value, { figure: step.roof_ns }),
      `${step.measured_ops}/${step.measured_ops + step.missing_ops}`,
    ],
  })),
  brief: 6,
});

/** Operations of a step, longest first. */
const operationTable = (step: KernelStep): Table => ({
  type: 'table',
  title: `Operations of ${stepLabel(step)}`,
  reasons: true,
  columns: [
    { id: 'operation', head: 'operation', wraps: true },
    { id: 'times', head: 'count', numeric: true },
    { id: 'each_ns', head: 'per call', numeric: true },
    { id: 'total_ns', head: 'total', numeric: true },
    { id: 'share', head: 'share', numeric: true },
    { id: 'roof_ns', head: 'roof', numeric: true, drop: 1 },
    { id: 'roof_share', head: 'of roof', numeric: true },
    { id: 'case', head: 'measured as', wraps: true, drop: 0 },
  ],
  rows: step.ops
    .toSorted((a, b) => (b.total_ns ?? -1) - (a.total_ns ?? -1))
    .map(({ name, count, total_ns: total, roof_ns: roof, case: id, reason }) => ({
      cells: [
        name,
        { count },
        ns(total === null ? null : total / count),
        ns(total),
        share(total, step.measured_ns.value),
        roof === null ? noRoof : ns(roof),
        share(roof, total, noRoof),
        reason === null && id !== null ? caseText(id) : { missing: reason ?? 'not measured' },
      ],
    })),
});

function notMeasured(steps: readonly KernelStep[]): { name: string; text: Text }[] {
  const reasons = new Set(
    steps.flatMap(({ ops }) =>
      ops.flatMap(({ name, reason }) => (reason === null ? [] : [`${name}: ${reason}`])),
    ),
  );
  return [...reasons].map((text) => ({ name: 'not measured', text }));
}
