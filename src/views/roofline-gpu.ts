import type { Collectives, GpuRoofline, MeasuredGpu } from '../model/documents/gpu-roofline.js';
import type { Block, Column, Section, Table, Text } from './block.js';

/** A section per fully measured GPU, one for GPUs compared with it, one for their links, and one for the search. */
export function gpuSections({ gpus, collectives }: GpuRoofline): Section[] {
  const full = gpus.filter(({ scope }) => scope === 'full');
  const compared = gpus.filter(({ scope }) => scope === 'compared');
  return [
    ...full.map((gpu): Section => ({
      id: `cuda-${gpu.index}`,
      title: `cuda:${gpu.index} · ${gpu.name}`,
      blocks: [{ type: 'text', text: traits(gpu) }, ...tables(gpu), gpuFacts(gpu), ...methods(gpu)],
    })),
    ...(compared.length > 0 ? [comparedSection(compared, full)] : []),
    ...(collectives ? [collectivesSection(collectives)] : []),
    ...(gpus.some(({ tried }) => tried.length > 0) ? [searchSection(gpus)] : []),
  ];
}

const quantity = (n: number | null, unit: string, before = '', digits?: number): Text[] =>
  n === null ? [] : [[before, { n, unit, ...(digits === undefined ? {} : { digits }) }] as Text];

const join = (texts: readonly Text[], between = ' · '): Text =>
  texts.flatMap((text, index) => [index === 0 ? '' : between, ...[text].flat()]) as Text;

const traits = ({ sm_count, memory_bytes, l2_bytes, power_limit_w }: MeasuredGpu): Text =>
  join([
    ...(sm_count === null ? [] : [{ count: sm_count, unit: 'SMs' }]),
    ...quantity(memory_bytes, 'B'),
    ...quantity(l2_bytes, 'B', 'L2 '),
    ...quantity(power_limit_w, 'W', 'limit '),
  ]);

type Measured = MeasuredGpu['compute'][number] | MeasuredGpu['bandwidth'][number];

/** Marks values measured while the clocks were throttled; the column and the issues give the cause. */
const withMark = (name: string, { throttled_by }: Pick<Measured, 'throttled_by'>): string =>
  throttled_by.length > 0 ? `${name}*` : name;

const rateColumns = (rate: string): Column[] => [
  { id: 'rate', head: rate, numeric: true },
  { id: 'sheet', head: 'data sheet', numeric: true, drop: 2 },
  { id: 'of_sheet', head: 'of sheet', numeric: true },
  { id: 'sd_share', head: 'sd', numeric: true },
  { id: 'runs', head: 'runs', numeric: true, drop: 1 },
];
const rateCells = (result: Measured, rate: Text): Text[] => [
  rate,
  { figure: result.sheet },
  { figure: result.of_sheet },
  { n: result.sd_share, unit: 'ratio' },
  { count: result.runs },
];

const clockColumns: readonly Column[] = [
  { id: 'sm_clock_mhz', head: 'MHz', numeric: true },
  { id: 'power_w', head: 'W', numeric: true },
  { id: 'throttled_by', head: 'throttled by', drop: 0 },
];
const clockCells = ({ sm_clock_mhz: mhz, power_w: watts, throttled_by }: Measured): Text[] => [
  mhz === null ? { missing: 'no sample' } : { count: mhz },
  watts === null ? { missing: 'no sample' } : { count: watts },
  throttled_by.join(', ').replaceAll('_', ' ') || 'nothing',
];

const size = ({ m, n, k }: { m: number; n: number; k: number }): string =>
  m === n && n === k ? `${m}³` : `${m}×${n}×${k}`;

function tables({ index, compute, bandwidth }: MeasuredGpu): Block[] {
  const computeTable: Table = {
    type: 'table',
    title: `Peak dense FLOP/s of cuda:${index}`,
    columns: [
      { id: 'dtype', head: 'compute peak' },
      ...rateColumns('FLOP/s'),
      { id: 'ridge_flop_per_byte', head: 'ridge', numeric: true },
      ...clockColumns,
      { id: 'size', head: 'M×N×K', wraps: true },
    ],
    rows: compute.map((peak) => ({
      cells: [
        withMark(peak.dtype, peak),
        ...rateCells(peak, { n: peak.flops_per_s, unit: 'FLOP/s' }),
        peak.ridge_flop_per_byte === null
          ? { missing: 'the bandwidth of the memory was not measured' }
          : { n: peak.ridge_flop_per_byte, unit: '' },
        ...clockCells(peak),
        size(peak),
      ],
    })),
  };
  const bandwidthTable: Table = {
    type: 'table',
    title: `Memory bandwidth of cuda:${index}`,
    columns: [
      { id: 'pattern', head: 'memory' },
      ...rateColumns('B/s'),
      ...clockColumns,
      { id: 'array_bytes', head: 'array size', numeric: true },
    ],
    rows: bandwidth.map((result) => ({
      cells: [
        withMark(result.pattern, result),
        ...rateCells(result, { n: result.bytes_per_s, unit: 'B/s' }),
        ...clockCells(result),
        { n: result.array_bytes, unit: 'B' },
      ],
    })),
  };
  return [computeTable, bandwidthTable].filter(({ rows }) => rows.length > 0);
}

/** Times of empty kernels, by the events they are measured between. */
const latencies = ({ launch, launch_device, launch_round_trip, graph_node }: MeasuredGpu) =>
  [
    { name: 'launch', what: 'of host time', latency: launch },
    { name: 'launch', what: 'from kernel to kernel', latency: launch_device },
    { name: 'launch', what: 'until the host sees completion', latency: launch_round_trip },
    { name: 'graph node', what: 'from kernel to kernel', latency: graph_node },
  ].flatMap(({ latency, ...rest }) => (latency === null ? [] : [{ ...rest, latency }]));

function gpuFacts(gpu: MeasuredGpu): Block {
  const { l2, host_links, sheet } = gpu;
  const times = (name: string): Text[] =>
    latencies(gpu)
      .filter((entry) => entry.name === name)
      .map(({ latency, what }) => [{ n: latency.ns, unit: 'ns' }, ` ${what}`]);
  const links = host_links.map((link): Text => [
    `${link.direction.replaceAll('-', ' ')} ${link.pinned ? 'pinned' : 'pageable'} `,
    { n: link.bytes_per_s, unit: 'B/s' },
    ...(link.of_sheet.value === null ? [] : [' (', { figure: link.of_sheet }, ' of its link)']),
  ]);
  const arrays: Text[] =
    l2 === null
      ? []
      : [['read ', { n: l2.bytes_per_s, unit: 'B/s' }, ' (array of ', { n: l2.array_bytes, unit: 'B' }, ')']];
  return {
    type: 'facts',
    items: [
      ...[
        { name: 'L2', texts: arrays },
        { name: 'launch', texts: times('launch') },
        { name: 'graph node', texts: times('graph node') },
        { name: 'host link', texts: links },
      ].flatMap(({ name, texts }) => (texts.length > 0 ? [{ name, text: join(texts) }] : [])),
      { name: 'data sheet', text: sheet ?? 'no data sheet for this name, so no shares' },
    ],
  };
}

const clocks: Record<string, string> = {
  events: 'between two events of the device',
  graph: 'replays of a graph of many',
  host: 'CPU clock',
};

const methods = (gpu: MeasuredGpu): Block[] =>
  latencies(gpu).length === 0
    ? []
    : [
        {
          type: 'fold',
          level: 3,
          title: 'How launches were timed',
          blocks: [
            {
              type: 'facts',
              items: latencies(gpu).map(({ name, what, latency }) => ({
                name: `${name}: ${what}`,
                text: `${latency.method} (${clocks[latency.method]})`,
              })),
            },
          ],
        },
      ];

/** GPUs of the same name as a fully measured one: how their rates compare. */
function comparedSection(gpus: readonly MeasuredGpu[], full: readonly MeasuredGpu[]): Section {
  const rates = ({ compute, bandwidth }: MeasuredGpu) => [
    ...compute.map((result) => ({ what: result.dtype, result })),
    ...bandwidth.map((result) => ({ what: result.pattern, result })),
  ];
  const items = gpus.map((gpu) => {
    const reference = full.find(({ name }) => name === gpu.name);
    const shares = rates(gpu).map(({ what, result }): Text => {
      const first =
        reference && rates(reference).find((candidate) => candidate.result.case === result.case)?.result;
      return [
        `${what} `,
        first
          ? { n: first.median_ns / result.median_ns, unit: 'ratio' }
          : { missing: 'no such case was measured on this GPU model' },
        withMark('', result),
      ];
    });
    return {
      name: `cuda:${gpu.index}`,
      text: reference
        ? ([`${gpu.name}, relative to cuda:${reference.index}: `, ...[join(shares)].flat()] as Text)
        : `${gpu.name}: no GPU of this name was measured in full`,
    };
  });
  return {
    id: 'compared',
    title: 'Other GPUs of the same name',
    blocks: [
      { type: 'facts', items },
      ...gpus.map((gpu): Block => ({
        type: 'fold',
        level: 2,
        title: `cuda:${gpu.index} · ${gpu.name}`,
        blocks: tables(gpu),
      })),
    ],
  };
}

/** Maximum sizes of collectives in a summary. */
const maxCollectiveSizes = 4;

const collectivesSection = ({ ranks, points, of_sheet }: Collectives): Section => ({
  id: 'collectives',
  title: `All-reduce over ${ranks} GPUs`,
  blocks: [
    {
      type: 'table',
      title: 'By size',
      columns: [
        { id: 'bytes', head: 'size', numeric: true },
        { id: 'median_ns', head: 'time', numeric: true },
        { id: 'algorithm_bytes_per_s', head: 'algorithm', numeric: true },
        { id: 'bus_bytes_per_s', head: 'bus', numeric: true },
        { id: 'sd_share', head: 'sd', numeric: true },
        { id: 'throttled_by', head: 'throttled by' },
      ],
      // The largest sizes are last, and give the rates that count.
      rows: points.map((point, index) => ({
        level: points.length - index <= maxCollectiveSizes ? 1 : 2,
        cells: [
          { n: point.bytes, unit: 'B' },
          { n: point.median_ns, unit: 'ns' },
          { n: point.algorithm_bytes_per_s, unit: 'B/s' },
          { n: point.bus_bytes_per_s, unit: 'B/s' },
          { n: point.sd_share, unit: 'ratio' },
          point.throttled_by.join(', ').replaceAll('_', ' ') || 'nothing',
        ],
      })),
    },
    {
      type: 'text',
      text: [
        'bus = algorithm × 2(n − 1)/n',
        ...(of_sheet.value === null
          ? []
          : ['; the fastest is ', { figure: of_sheet }, ' of one direction of the link in the data sheet']),
      ] as Text,
    },
  ],
});

const searchSection = (gpus: readonly MeasuredGpu[]): Section => ({
  id: 'search',
  title: 'Sizes tried',
  level: 3,
  blocks: [
    {
      type: 'table',
      title: 'Every GEMM of the search',
      filter: true,
      columns: [
        { id: 'gpu', head: 'GPU' },
        { id: 'dtype', head: 'dtype' },
        { id: 'size', head: 'M×N×K' },
        { id: 'flops_per_s', head: 'FLOP/s', numeric: true },
        { id: 'outcome', head: 'outcome' },
      ],
      rows: gpus.flatMap(({ index, tried }) =>
        tried.map((attempt) => ({
          cells: [
            `cuda:${index}`,
            attempt.dtype,
            `${attempt.m}×${attempt.n}×${attempt.k}`,
            attempt.flops_per_s === null
              ? { missing: attempt.outcome.replaceAll('_', ' ') }
              : { n: attempt.flops_per_s, unit: 'FLOP/s' },
            attempt.outcome.replaceAll('_', ' '),
          ],
        })),
      ),
    },
  ],
});
