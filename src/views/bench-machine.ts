import type { BenchResult } from '../model/documents/bench.js';
import { latencyLabels } from '../vocabulary/loads.js';
import type { Block, Section } from './block.js';
import { figureColumn, latencyColumn, measuredRows, pointColumns, type PointRow } from './bench-points.js';
import { batchChart, batchLines, knownMachineValues, machineValues, meanOf } from './bench-series.js';
import { samplesBlock } from './samples.js';
import { type ColumnOf, tableOf } from './table-of.js';

/** What the machine did while each point was timed. */
export function machineSection(data: BenchResult): Section {
  const lines = batchLines(data);
  const isSweep = lines.some(({ points }) => points.length > 1);
  return {
    id: 'machine',
    title: 'Machine activity',
    level: 2,
    blocks: [
      ...(isSweep ? knownMachineValues(data).map((part) => machineChart(data, part)) : []),
      tableOf(
        'While each point was timed',
        [
          ...pointColumns(data),
          figureColumn('memory_bytes', 'memory', ({ machine }) => machine.memory_bytes),
          figureColumn(
            'gpu_memory_bytes',
            'GPU memory, all',
            ({ machine }) => machine.gpu_memory_used_bytes,
            0,
          ),
          figureColumn(
            'gpu_utilization',
            'GPU utilization',
            ({ machine }) => machine.gpu_utilization_percent,
          ),
          figureColumn(
            'prefill_idle_share',
            'idle in prefill',
            (point) => point.device_work.prefill_idle_share,
            4,
          ),
          figureColumn('decode_idle_share', 'idle in decode', (point) => point.device_work.decode_idle_share),
          figureColumn('decode_kernels', 'kernels/step', ({ device_work: work }) => work.decode_kernels, 3),
          figureColumn('cpu_cores_busy', 'CPU cores', ({ machine }) => machine.cpu_cores_busy, 5),
          figureColumn('power_w', 'power', ({ machine }) => machine.power_w, 6),
          figureColumn('sm_clock_mhz', 'SM clock', ({ machine }) => machine.sm_clock_mhz, 1),
          figureColumn(
            'joules_per_token',
            'per output token',
            (point) => point.machine.joules_per_output_token,
            7,
          ),
          figureColumn('kv_cache_share', 'KV cache', ({ machine }) => machine.kv_cache_usage, 2),
        ],
        measuredRows(data),
      ),
    ],
  };
}

function machineChart(data: BenchResult, part: keyof typeof machineValues): Block {
  const { name, unit, max, figureOf } = machineValues[part];
  const lines = batchLines(data);
  const rows = lines.flatMap(({ name: line, points }) => points.map((point) => ({ line, point })));
  return {
    type: 'chart',
    level: 3,
    half: true,
    title: name,
    label: `${name} against the batch size`,
    chart: { ...batchChart(lines, unit, figureOf, max), small: true },
    behind: tableOf(
      name,
      [
        ...(lines.length > 1
          ? [{ id: 'line', head: '', cell: ({ line }: (typeof rows)[number]) => line }]
          : []),
        {
          id: 'batch_size',
          head: 'batch',
          numeric: true,
          cell: ({ point }) => ({ count: point.batch_size }),
        },
        {
          id: part,
          head: name,
          numeric: true,
          cell: ({ point }) => ({ figure: figureOf(point), spread: true }),
        },
      ],
      rows,
    ),
  };
}

const shareColumn = (
  id: 'prefill_mfu' | 'prefill_mbu' | 'decode_mfu' | 'decode_mbu',
  drop?: number,
): ColumnOf<PointRow> => ({
  id: `${id}_share`,
  head: id.replace('_', ' ').replace(/m[fb]u/, (name) => name.toUpperCase()),
  numeric: true,
  ...(drop === undefined ? {} : { drop }),
  cell: ({ point }) => ({ figure: point.model_utilization[id], spread: 'interval', utilization: true }),
});

const boundColumn = (id: 'prefill_bound' | 'decode_bound', drop: number): ColumnOf<PointRow> => ({
  id,
  head: id.replace('_', ' '),
  drop,
  cell: ({ point }) => point.model_utilization[id] ?? { missing: 'no roofline was measured' },
});

/** The latency range expected from the roofline, and the measured mean relative to its low end. */
const expectedColumns = (metric: 'ttft' | 'tpot', drop: number): ColumnOf<PointRow>[] => [
  latencyColumn(`${metric}_ms`, drop),
  {
    id: `${metric}_expected_ms`,
    head: 'expected',
    numeric: true,
    cell: ({ point: { expected } }) => {
      const range = expected[metric];
      if ('value' in range) return { missing: range.reason.text };
      return [{ n: range.low, unit: 'ms' }, ' to ', { n: range.high, unit: 'ms' }];
    },
  },
  {
    id: `${metric}_over_low`,
    head: `${latencyLabels[metric]} / low`,
    numeric: true,
    drop: drop + 2,
    cell: ({ point: { expected, latency } }) => {
      const range = expected[metric];
      if ('value' in range) return { missing: range.reason.text };
      const { value } = meanOf(latency[`${metric}_ms`]);
      return value === null || range.low <= 0
        ? { missing: 'not measured' }
        : [{ n: value / range.low, unit: '', digits: 2 }, '×'];
    },
  },
];

/** Shares of the roofline, expected latencies, and times on the device. */
export function efficiencySection(data: BenchResult): Section {
  const rows = measuredRows(data);
  const sources = new Set(
    rows.flatMap(({ point }) =>
      [point.expected.ttft, point.expected.tpot].flatMap((figure) =>
        'value' in figure ? [] : [figure.explanation],
      ),
    ),
  );
  return {
    id: 'efficiency',
    title: 'Compared with the roofline',
    level: 2,
    blocks: [
      tableOf(
        'Share of the roofline',
        [
          ...pointColumns(data),
          shareColumn('prefill_mfu'),
          shareColumn('prefill_mbu', 0),
          shareColumn('decode_mfu', 1),
          shareColumn('decode_mbu'),
          boundColumn('prefill_bound', 2),
          boundColumn('decode_bound', 3),
        ],
        rows,
      ),
      tableOf(
        'Expected from the roofline',
        [...pointColumns(data), ...expectedColumns('ttft', 0), ...expectedColumns('tpot', 1)],
        rows,
      ),
      { type: 'notes', items: [...sources].map((how) => `Expected: ${how}.`) },
      tableOf(
        'On the device: time between events, and sum of kernels (framework profiler)',
        [
          ...pointColumns(data),
          latencyColumn('prefill_device_ms'),
          figureColumn(
            'prefill_kernel_ms',
            'prefill, kernels',
            (point) => point.device_work.prefill_kernel_ms,
          ),
          latencyColumn('decode_device_ms'),
          figureColumn(
            'decode_kernel_ms',
            'decode step, kernels',
            (point) => point.device_work.decode_kernel_ms,
            0,
          ),
        ],
        rows,
      ),
    ],
  };
}

export function telemetrySections({ telemetry = [] }: BenchResult): Section[] {
  if (telemetry.length === 0) return [];
  return [
    {
      id: 'telemetry',
      title: 'Telemetry',
      level: 3,
      blocks: [samplesBlock(telemetry, 'Host and GPUs over time')],
    },
  ];
}
