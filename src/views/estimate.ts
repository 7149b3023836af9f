import { formatQuantity } from '../vocabulary/format.js';
import { estimateLengthWords } from '../vocabulary/workload.js';
import type { Document } from '../model/document.js';
import type { EstimateResult } from '../model/documents/estimate.js';
import type { EstimateMemory, EstimatePoint } from '../model/documents/estimate-memory.js';
import { componentLabels, poolTooSmall } from '../vocabulary/memory-components.js';
import type { Block, Part, Section, Text, Value, View } from './block.js';
import { layersSection } from './estimate-layers.js';
import { type ColumnOf, tableOf, withoutConstantColumns } from './table-of.js';
import { weightFormatLabel } from '../vocabulary/weight-formats.js';

const number = { numeric: true } as const;
/** Bytes in powers of 1000, as in memory profiles; an estimate supports three digits. */
const bytes = (n: number): Value => ({ n: n / 1e9, unit: 'GB' });
const gigabytes = (n: number): string => formatQuantity(n / 1e9, 'GB');
const countValue = (count: number): Value => ({ count });
const withoutUnit = (n: number): Value => ({ n, unit: '' });

/** Maximum GPUs next to each other in one table. */
const gpusInTable = 4;

/** Memory of a model before it is downloaded: parameters, files, KV cache, memory per GPU, and whether it fits. */
export function estimateView(document: Document<EstimateResult>): View {
  const { data, issues } = document;
  const { model, activation_dtype: activations } = data;
  const weights = weightFormatLabel(data.weight_format);
  const format = weights === activations ? weights : `weights: ${weights}; activations: ${activations}`;
  return {
    command: 'estimate',
    title: `${model.name} (${model.model_type}; ${format}) · ${model.layers} layers`,
    document,
    session: { id: null, started_at: '' },
    lead: [{ type: 'facts', items: modelFacts(data) }],
    sections: [
      ...(data.layers ? [layersSection(data.layers)] : []),
      ...(data.memory ? [memorySection(data.memory)] : []),
      { id: 'issues', title: '', untitled: true, blocks: [{ type: 'issues', issues }] },
    ],
  };
}

function modelFacts({
  parameters,
  files,
  kv_cache_bytes_per_token: kv,
  kv_cache_bytes_per_source_token: sourceKv,
  kv_cache_dtype: kvDtype,
  weight_bytes: weights,
  memory,
}: EstimateResult): { name: string; text: Text }[] {
  const { total, active } = parameters;
  const inBillions = (n: number): Part => ({ n, unit: 'parameters', bare: true });
  return [
    {
      name: 'parameters',
      text: [
        countValue(total),
        ...(total < 1e6 ? [] : [' (', inBillions(total), ')']),
        ...(active === total ? [] : [', ', inBillions(active), ' active per token']),
      ],
    },
    ...(files
      ? [
          {
            name: 'files',
            text: [
              bytes(files.bytes),
              `, ${files.source}`,
              ...files.excluded.flatMap(({ what, bytes: size }, index): Part[] => [
                index === 0 ? '; left out: ' : ', ',
                bytes(size),
                ` (${what})`,
              ]),
            ],
          },
        ]
      : []),
    ...(memory ? [] : [{ name: 'weights', text: bytes(weights) }]),
    {
      name: 'KV cache',
      text: [
        bytes(kv),
        ` per token and sequence (${kvDtype})`,
        ...(sourceKv === undefined ? [] : [', ', bytes(sourceKv), ' per token of the source']),
      ],
    },
  ];
}

function memorySection(memory: EstimateMemory): Section {
  const [first] = memory.points;
  return memory.points.length === 1 && first ? pointSection(memory, first) : pointsSection(memory);
}

function machineText(memory: EstimateMemory): Part[] {
  const { gpu, gpu_count: count, engine } = memory;
  if (engine === 'onnx') return ['main memory'];
  const groups = (['tensor', 'pipeline', 'expert'] as const).flatMap((kind) => {
    const size = memory[`${kind}_parallel_size`];
    return size === 1 ? [] : [`, ${kind} parallel ${size}`];
  });
  return [
    `${count} × ${gpu?.name ?? 'GPU'}`,
    ...(gpu?.total_bytes ? [', ', bytes(gpu.total_bytes), ...(count > 1 ? [' each'] : [])] : []),
    ...groups,
  ];
}

function pointSection(memory: EstimateMemory, point: EstimatePoint): Section {
  const share = memory.engine === 'vllm' ? `, utilization ${memory.gpu_memory_utilization}` : '';
  const kinds = differentGpus(point);
  const tables = Array.from({ length: Math.ceil(kinds.length / gpusInTable) }, (_, index) =>
    componentTable(point, kinds, kinds.slice(index * gpusInTable, (index + 1) * gpusInTable)),
  );
  return {
    id: 'memory',
    title: `Memory at ${point.peak === 'startup' ? 'startup' : `the peak, in ${point.peak}`}`,
    blocks: [
      {
        type: 'text',
        text: [
          `${memory.engine}${share}, batch ${point.batch_size}, ${estimateLengthWords(point.input_len, point.output_len)}, `,
          ...machineText(memory),
        ],
      },
      ...tables,
      { type: 'facts', items: verdicts(memory, point) },
      { type: 'heading', text: 'Sources of the figures' },
      {
        type: 'facts',
        items: point.lines.map(({ component, formula }) => ({ name: labelOf(component), text: formula })),
      },
    ],
  };
}

const labelOf = (component: EstimatePoint['lines'][number]['component']): string =>
  componentLabels[component];

type GpuKind = ReturnType<typeof differentGpus>[number];

function componentTable(
  point: EstimatePoint,
  all: readonly GpuKind[],
  columnGpus: readonly GpuKind[],
): Block {
  const singleHead = point.gpus.length > 1 ? 'each GPU' : 'memory';
  return {
    type: 'table',
    title: 'Memory by component',
    columns: [
      { id: 'component', head: 'component' },
      ...columnGpus.map(({ gpu, label }) => ({
        id: `gpu${gpu}_bytes`,
        head: all.length === 1 ? singleHead : label,
        ...number,
      })),
      { id: 'confidence', head: 'confidence' },
    ],
    rows: [
      ...point.lines.map(({ component, gpu_bytes: gpuBytes, confidence }) => ({
        cells: [labelOf(component), ...columnGpus.map(({ gpu }) => bytes(gpuBytes[gpu] ?? 0)), confidence],
      })),
      { cells: ['total', ...columnGpus.map(({ gpu }) => bytes(point.gpus[gpu]!.bytes)), ''] },
    ],
  };
}

/** GPUs with equal memory share one column. */
function differentGpus({ gpus, lines }: EstimatePoint): { gpu: number; label: string }[] {
  const groups = new Map<string, number[]>();
  for (const { gpu } of gpus) {
    const key = lines.map(({ gpu_bytes }) => gpu_bytes[gpu]).join();
    groups.set(key, [...(groups.get(key) ?? []), gpu]);
  }
  return [...groups.values()].map((members) => {
    const [from = 0] = members;
    const to = members.at(-1) ?? from;
    const isConsecutive = to - from + 1 === members.length;
    return { gpu: from, label: `GPU ${from}${members.length === 1 ? '' : isConsecutive ? `–${to}` : ', …'}` };
  });
}

function verdicts(memory: EstimateMemory, point: EstimatePoint): { name: string; text: Text }[] {
  const total = memory.gpu?.total_bytes ?? null;
  const { fits, kv_pool: pool, largest } = point;
  const poolFacts =
    memory.engine === 'vllm' && pool ? [{ name: 'KV pool', text: poolText(memory, point, pool) }] : [];
  // Main memory is not a GPU's.
  if (memory.engine === 'onnx') return [];
  if (fits === null || total === null) {
    return [...poolFacts, { name: 'fits', text: `unknown: ${gpuHint}` }];
  }
  const alternatives = point.would_fit.flatMap(({ change, needed_gpu_bytes: needed }, index): Part[] => [
    `${index === 0 ? '' : ', '}${change} (`,
    bytes(needed),
    ' per GPU)',
  ]);
  const alternative = largest.batch_size ? 'a smaller batch' : 'a larger GPU, or more of them';
  return [
    ...poolFacts,
    { name: 'fits', text: fitsText(memory, point, total) },
    { name: 'largest', text: largestText(point) },
    ...(alternatives.length > 0
      ? [{ name: 'would fit', text: alternatives }]
      : fits
        ? []
        : [{ name: 'would fit', text: alternative }]),
  ];
}

const gpuHint = 'give --gpu, e.g. --gpu A10G or --gpu 24GiB';

const poolText = (
  { max_model_len: longest }: EstimateMemory,
  { kv_needed_bytes: needed }: EstimatePoint,
  { tokens, concurrency }: NonNullable<EstimatePoint['kv_pool']>,
): Text => [
  countValue(tokens),
  ' tokens, ',
  withoutUnit(concurrency),
  ' sequences of ',
  countValue(longest),
  ' concurrently',
  '; this batch needs ',
  bytes(needed),
];

/** Whether vLLM's pool holds the batch, but not one sequence of max_model_len. */
const isRefused = ({ kv_pool: pool, lines, kv_needed_bytes: needed }: EstimatePoint): boolean =>
  pool !== null &&
  pool.concurrency < 1 &&
  Math.min(...(lines.find(({ component }) => component === 'kv_cache')?.gpu_bytes ?? [0])) >= needed;

function fitsText(memory: EstimateMemory, point: EstimatePoint, total: number): Text {
  const { needed_gpu_bytes: needed, fits } = point;
  if (isRefused(point)) return `no: ${poolTooSmall(memory.max_model_len)}`;
  // The KV cache grows further after the peak in prefill.
  const grows = gigabytes(needed) !== gigabytes(point.largest_gpu_bytes);
  const cacheWords =
    memory.engine === 'vllm'
      ? ' with the KV cache of this batch'
      : grows
        ? ' with the KV cache of all tokens'
        : '';
  const sizes: Part[] = ['needs ', bytes(needed), `${cacheWords}, the GPU has `, bytes(total)];
  if (fits) return ['yes: ', ...sizes, ` (${memory.gpu!.source})`];
  const spare = total - needed;
  if (spare >= 0) return ['no: ', ...sizes, ', of which vLLM may use less (gpu_memory_utilization)'];
  const reserve = Math.max(
    0,
    ...(point.lines.find(({ component }) => component === 'allocator_reserve')?.gpu_bytes ?? []),
  );
  return [
    'no: ',
    ...sizes,
    ', ',
    bytes(-spare),
    ' over',
    spare + reserve >= 0
      ? "; that is less than torch's reserve, which it can partly release: it may run slower"
      : '',
  ];
}

function largestText({ largest, batch_size, input_len, output_len }: EstimatePoint): Text {
  const { context_tokens: context, batch_size: batch } = largest;
  const length = countValue(input_len + output_len);
  const parts: Part[][] = [
    ...(context === null
      ? []
      : [
          context === 0
            ? [`no context fits at batch ${batch_size}`]
            : [countValue(context), ` tokens of context at batch ${batch_size}`],
        ]),
    ...(batch === null
      ? []
      : [
          batch === 0
            ? ['not one sequence of ', length, ' tokens']
            : ['batch ', countValue(batch), ' at ', length, ' tokens'],
        ]),
  ];
  if (parts.length === 0) return { missing: 'GPU size unknown' };
  return parts.flatMap((part, index) => (index === 0 ? part : [', ', ...part]));
}

const overheads: readonly string[] = [
  'framework_overhead',
  'cuda_graphs',
  'cuda_context',
  'allocator_reserve',
];

/** Bytes on the fullest GPU. */
const componentBytes = ({ lines }: EstimatePoint, components: readonly string[]): Value =>
  bytes(
    lines
      .filter(({ component }) => components.includes(component))
      .reduce((sum, { gpu_bytes }) => sum + Math.max(...gpu_bytes), 0),
  );

const unknownGpu = { missing: 'GPU size unknown' };

/** The lowest `drop` numbers are parts of a sum, so a narrow terminal drops them first. */
const pointColumns: readonly ColumnOf<EstimatePoint>[] = [
  { id: 'batch_size', head: 'batch', ...number, cell: ({ batch_size: n }) => countValue(n) },
  { id: 'input_len', head: 'input', ...number, cell: ({ input_len: n }) => countValue(n) },
  { id: 'output_len', head: 'output', ...number, drop: 4, cell: ({ output_len: n }) => countValue(n) },
  {
    id: 'weights_bytes',
    head: 'weights',
    ...number,
    drop: 2,
    cell: (point) => componentBytes(point, ['model_weights']),
  },
  { id: 'kv_cache_bytes', head: 'KV cache', ...number, drop: 3, cell: ({ kv_needed_bytes: n }) => bytes(n) },
  {
    id: 'activations_bytes',
    head: 'activations',
    ...number,
    drop: 1,
    cell: (point) => componentBytes(point, ['activations']),
  },
  {
    id: 'overhead_bytes',
    head: 'overhead',
    ...number,
    drop: 0,
    cell: (point) => componentBytes(point, overheads),
  },
  { id: 'needed_bytes', head: 'needed', ...number, cell: ({ needed_gpu_bytes: n }) => bytes(n) },
  {
    id: 'fits',
    head: 'fits',
    cell: ({ fits }) => (fits === null ? unknownGpu : fits ? 'yes' : 'no'),
  },
  {
    id: 'largest_context_tokens',
    head: 'max context',
    ...number,
    cell: ({ largest: { context_tokens: n } }) => (n === null ? unknownGpu : countValue(n)),
  },
];

/** One row per point of a list of batch sizes and lengths. */
function pointsSection(memory: EstimateMemory): Section {
  const { points } = memory;
  const { columns, constants } = withoutConstantColumns(pointColumns, points, [
    'batch_size',
    'needed_bytes',
    'fits',
  ]);
  const unknown = points.every(({ fits }) => fits === null) && memory.engine !== 'onnx';
  return {
    id: 'memory',
    title: 'Memory of the fullest GPU',
    blocks: [
      { type: 'text', text: [`${memory.engine}, `, ...machineText(memory)] },
      ...(constants.length > 0 ? [{ type: 'text', text: ['in all rows: ', ...constants] } as const] : []),
      tableOf('Memory by batch and lengths', columns, points),
      ...(points.some(isRefused)
        ? [{ type: 'text', text: `${poolTooSmall(memory.max_model_len)}.` } as const]
        : []),
      ...(unknown ? [{ type: 'text', text: `Whether it fits: ${gpuHint}` } as const] : []),
    ],
  };
}
