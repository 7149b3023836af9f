import type { EstimateLayers, EstimateSizes } from '../model/documents/estimate.js';
import type { Block, Section, Value } from './block.js';
import { rangesText } from './ranges.js';
import { type ColumnOf, tableOf } from './table-of.js';
import { plural } from '../vocabulary/format.js';

/** In powers of 1000, as the model's memory. */
const bytes = (n: number): Value => (n === 0 ? { n, unit: 'B' } : { n: n / 1e9, unit: 'GB' });
const number = { numeric: true } as const;

interface Line extends EstimateSizes {
  module: string;
}

const columns: readonly ColumnOf<Line>[] = [
  { id: 'module', head: 'module', wraps: true, cell: ({ module }) => module },
  {
    id: 'parameters_m',
    head: 'M params',
    ...number,
    cell: ({ parameters: n }) => ({ n: n / 1e6, unit: '' }),
  },
  { id: 'flops', head: 'compute', ...number, cell: ({ flops: n }) => ({ n, unit: 'FLOP' }) },
  { id: 'bytes', head: 'traffic', ...number, cell: ({ bytes: n }) => bytes(n) },
  {
    id: 'kv_bytes',
    head: 'KV part',
    ...number,
    cell: ({ kv_read_bytes: read, kv_write_bytes: written }) => bytes(read + written),
  },
  { id: 'activation_in_bytes', head: 'act. in', ...number, cell: ({ activation_in_bytes: n }) => bytes(n) },
  {
    id: 'activation_out_bytes',
    head: 'act. out',
    ...number,
    cell: ({ activation_out_bytes: n }) => bytes(n),
  },
];

/** Parameters, compute and traffic of each module; layers of the same structure are summed. */
export function layersSection(layers: EstimateLayers): Section {
  const { phase, batch_size: batch, new_tokens: tokens, context_tokens: context } = layers;
  const totals: Line[] = [
    ...layers.groups.map((group) => ({ module: `layer ${rangesText(group.layers)}`, ...group.total })),
    ...layers.outside,
    { module: 'total', ...layers.total },
  ];
  return {
    id: 'layers',
    title: 'Layers',
    blocks: [
      {
        type: 'text',
        text: [
          `${phase}, batch ${batch}, `,
          `${plural(tokens, 'new token')} per sequence, `,
          { count: context },
          ' in the KV cache before',
        ],
      },
      ...layers.groups.flatMap(({ layers: numbers, structure, modules }): Block[] => [
        {
          type: 'heading',
          text: `${numbers.length === 1 ? 'Layer' : `Sum of ${numbers.length} equal layers,`} ${rangesText(numbers)}: ${structure}`,
        },
        tableOf('Modules', columns, modules),
      ]),
      { type: 'heading', text: 'All' },
      tableOf('Layers, and modules outside them', columns, totals),
    ],
  };
}
