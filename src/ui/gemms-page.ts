import { emptySection } from './empty-section.js';
import type { Document } from '../model/document.js';
import type { Gemm, GemmsResult } from '../model/documents/gemms.js';
import type { Block, Section } from '../views/block.js';
import { tableOf } from '../views/table-of.js';
import type { RooflineChart } from '../views/chart.js';
import { gemmKey } from '../facts/gemms/gemm-calls.js';
import type { DTypeRoof } from '../facts/gemms/roof.js';
import { shapeLabel } from '../vocabulary/gemm-shape.js';
import { gemmBlocks } from '../views/gemms.js';
import { lineMark } from '../vocabulary/colors.js';

/** Rows of the table; further shapes are folded below it. */
const maxShapes = 200;

/**
 * GEMMs by shape: a roofline chart, then a table with their tiles.
 * @param linkTo link to the calls of a GEMM
 */
export function gemmSections(
  document: Document<GemmsResult>,
  roofs: RoofsByType,
  linkTo: (gemm: Gemm) => string | undefined,
): Section[] {
  const table = gemmBlocks(document, maxShapes, linkTo);
  const chart = rooflineOf(roofs, document.data.gemms, linkTo);
  const chartBlocks: Block[] =
    chart.points.length === 0
      ? []
      : [
          {
            type: 'chart',
            title: 'Achieved FLOP/s against arithmetic intensity',
            label: 'GEMMs under the roofs of the GPU',
            chart,
            behind: pointsTable(chart),
          },
        ];
  return [{ id: 'gemms', title: 'GEMMs', blocks: [...chartBlocks, ...table] }];
}

/** Peak and bandwidth by type of GEMMs. */
export type RoofsByType = ReadonlyMap<string | null, Pick<DTypeRoof, 'peak' | 'bandwidth'>>;

/** A point per shape that has a time, under the roofs of its type. */
function rooflineOf(
  roofs: RoofsByType,
  shown: readonly Gemm[],
  linkTo: (gemm: Gemm) => string | undefined,
): RooflineChart {
  const types = [...new Set([...roofs.keys(), ...shown.map(({ dtype }) => dtype)])];
  return {
    form: 'roofline',
    slopes: [...new Set([...roofs.values()].map(({ bandwidth }) => bandwidth))].map((bytes_per_s) => ({
      name: '',
      bytes_per_s,
    })),
    peaks: [...roofs].map(([dtype, { peak }]) => ({ dtype: dtype ?? '', flops_per_s: peak })),
    ridge: null,
    points: shown.flatMap((gemm) => {
      const { achieved_flops: rate, arithmetic_intensity: intensity, dtype, total_time_ns: time } = gemm;
      if (rate.value === null || intensity.value === null || gemm.source !== 'profiler') return [];
      const link = linkTo(gemm);
      return [
        {
          name: shapeLabel(gemm),
          ...(link === undefined ? {} : { link }),
          group: dtype ?? 'type unknown',
          ...lineMark(types.indexOf(dtype)),
          intensity: intensity.value,
          flops_per_s: rate.value,
          notes: [
            [{ count: gemm.calls }, ' calls, ', { figure: time }],
            ...(gemm.roof && gemm.roof.share.value !== null
              ? [[{ figure: gemm.roof.share }, ' of roof']]
              : []),
          ],
        },
      ];
    }),
  };
}

const pointsTable = ({ points }: RooflineChart): Block =>
  tableOf(
    'GEMMs of the chart',
    [
      {
        id: 'shape',
        head: 'M × N × K',
        cell: ({ name, link }) => (link === undefined ? name : { link, text: name }),
      },
      { id: 'dtype', head: 'type', cell: ({ group }) => group ?? '' },
      {
        id: 'flop_per_byte',
        head: 'FLOP/byte',
        numeric: true,
        cell: ({ intensity }) => ({ n: intensity, unit: '' }),
      },
      {
        id: 'achieved_flops',
        head: 'FLOP/s',
        numeric: true,
        cell: ({ flops_per_s: n }) => ({ n, unit: 'FLOP/s' }),
      },
    ],
    points,
  );

/**
 * GEMMs that one kernel computed, under the rooflines of the GPU.
 * @param keys the kernel's GEMMs by gemmKey
 */
export function kernelRoofline(
  gemms: readonly Gemm[],
  keys: readonly string[],
  roofs: RoofsByType,
  linkTo: (gemm: Gemm) => string | undefined,
): Block[] {
  const shown = gemms.filter((gemm) => gemm.source === 'profiler' && keys.includes(gemmKey(gemm)));
  const chart = rooflineOf(roofs, shown, linkTo);
  if (chart.points.length === 0) return [];
  const number = { numeric: true } as const;
  return [
    {
      type: 'chart',
      title: 'Its GEMMs under the roofs of the GPU',
      label: 'GEMMs of the kernel under the roofs of the GPU',
      chart,
      behind: tableOf(
        'GEMMs that the kernel ran for; times are of all their kernels',
        [
          {
            id: 'shape',
            head: 'M × N × K',
            cell: (gemm) => {
              const [text, link] = [shapeLabel(gemm), linkTo(gemm)];
              return link === undefined ? text : { link, text };
            },
          },
          { id: 'dtype', head: 'type', cell: ({ dtype }) => dtype ?? '' },
          { id: 'calls', head: 'calls', ...number, cell: ({ calls }) => ({ count: calls }) },
          { id: 'total_ns', head: 'time', ...number, cell: ({ total_time_ns: figure }) => ({ figure }) },
          { id: 'flops', head: 'FLOP/s', ...number, cell: ({ achieved_flops: figure }) => ({ figure }) },
          {
            id: 'roof_share',
            head: 'of roof',
            ...number,
            cell: ({ roof }) =>
              roof ? { figure: roof.share, utilization: true } : { missing: 'roof unknown' },
          },
        ],
        shown,
      ),
    },
  ];
}

/** Shown if a kernel has no place in the roofline chart. */
export const noPlace: Block = {
  type: 'missing',
  what: 'No place in the roofline.',
  why: 'FLOP and bytes are known where a GEMM with recorded shapes launched the kernel, or where Nsight Compute counted both (inferscope run --evaluator nsys,ncu).',
};

/** Shown if the session has no GEMMs: the reason, and the commands that record them. */
export const noGemms = emptySection(
  'gemms',
  'GEMMs',
  'No GEMMs.',
  'This session has neither kernels with the shapes of their operators nor calls of cuBLAS.',
  ['inferscope run -- COMMAND', 'Record a PyTorch program with shapes and kernels'],
  ['inferscope import LOG', 'Read a cuBLAS or cuBLASLt log'],
);
