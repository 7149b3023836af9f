import type { TraceKernel } from '../model/documents/trace.js';
import { classLabels } from '../vocabulary/op-classes.js';
import { phaseLabel } from '../vocabulary/stages.js';
import type { Block, Text } from './block.js';
import { tableOf } from './table-of.js';
import { type namedKernels, unitless, ns, number, ratio } from './trace-values.js';

/**
 * One row per kernel; on a page statistics and types are in the detail columns.
 * @param nameOf labels that distinguish all kernels of the capture, as evidence and answers have them
 */
export function kernelTable(
  title: string,
  kernels: readonly TraceKernel[],
  { nameOf, hasPhases }: { nameOf: ReturnType<typeof namedKernels>; hasPhases: boolean },
): Block {
  return tableOf(
    title,
    [
      {
        id: 'kernel',
        head: 'kernel',
        wraps: 40,
        cell: ({ name }) => nameOf(name),
      },
      { id: 'class', head: 'class', cell: (kernel) => classLabels[kernel.class] },
      { id: 'count', head: 'count', ...number, cell: ({ count }) => ({ count }) },
      { id: 'total_ns', head: 'total', ...number, cell: ({ total_ns: n }) => ns(n) },
      { id: 'share', head: 'share', ...number, cell: ({ share }) => ratio(share) },
      { id: 'median_ns', head: 'median', ...number, cell: ({ median_ns: n }) => ns(n) },
      { id: 'mean_ns', head: 'mean', detail: true, ...number, drop: 4, cell: ({ mean_ns: n }) => ns(n) },
      { id: 'min_ns', head: 'min', detail: true, ...number, drop: 3, cell: ({ min_ns: n }) => ns(n) },
      { id: 'max_ns', head: 'max', detail: true, ...number, drop: 3, cell: ({ max_ns: n }) => ns(n) },
      {
        id: 'sd_ns',
        head: 'sd',
        detail: true,
        ...number,
        drop: 2,
        cell: ({ sd_ns: n }) => (n === null ? { missing: 'one call has no spread' } : ns(n)),
      },
      ...(hasPhases
        ? [
            {
              id: 'per_phase',
              head: 'per stage',
              meaning: 'mean number per instance',
              drop: 5,
              cell: perPhase,
            },
          ]
        : []),
      {
        id: 'tile',
        head: 'tile',
        detail: true,
        drop: 0,
        cell: ({ tile }) => tile ?? { missing: 'the name has no tile' },
      },
      {
        id: 'dtype',
        head: 'type',
        detail: true,
        drop: 0,
        cell: ({ dtype }) => dtype ?? { missing: 'the name has no type' },
      },
    ],
    kernels,
    { filter: true, reasons: false },
  );
}

const perPhase = ({ phases }: TraceKernel): Text =>
  phases
    .filter(({ per_instance: n }) => n > 0)
    .flatMap(({ kind, per_instance: n }, index) => [
      `${index === 0 ? '' : ', '}${phaseLabel(kind)} `,
      unitless(n),
    ]);
