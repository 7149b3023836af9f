import type { LatencyResult, MemoryResult, ProfileResult } from '../model/documents/profile.js';
import type { Figure } from '../model/figure.js';
import { evenlySpaced } from '../model/evenly-spaced.js';
import { pointLabels } from '../vocabulary/memory-points.js';
import { classLabels } from '../vocabulary/op-classes.js';
import { componentNames } from '../vocabulary/profile-memory.js';
import type { Block, Section, Text } from './block.js';
import { linked, type Places, pointPlace } from './findings.js';
import { memoryChart, repeatsChart, rooflineChart, stepsChart } from './profile-charts.js';
import { bandwidthRoofs, intervalsOver, repeatLabels, rooflinePoints } from './profile-series.js';
import { cpuTables } from './roofline.js';
import { samplesBlock } from './samples.js';
import { tableOf } from './table-of.js';
import { plural } from '../vocabulary/format.js';

const ms = (value: number): Text => ({ n: value, unit: 'ms' });
const spread = (figure: Figure): Text => ({ figure, spread: true });

const figureTable = (title: string, rows: readonly [name: string, figure: Figure][]): Block =>
  tableOf(
    title,
    [
      { id: 'figure', head: '', cell: ([name]) => name },
      { id: 'value', head: 'mean', numeric: true, cell: ([, figure]) => spread(figure) },
    ],
    rows,
  );

export function rooflineSection(data: ProfileResult, places?: Places): Section {
  const { roofline } = data;
  const section = (blocks: Block[]): Section => ({ id: 'roofline', title: 'Roofline', level: 3, blocks });
  if (!roofline)
    return section([
      {
        type: 'missing',
        what: "This machine's roofline was not measured:",
        why: 'the limit of a stage, MFU and MBU are unknown. Measure it with: inferscope roofline',
      },
    ]);
  const roofs = bandwidthRoofs(roofline);
  return section([
    {
      type: 'text',
      text: [
        `Peaks of this machine, measured by ${roofline.engine} with ${plural(roofline.threads, 'thread')} on ${roofline.measured_at.slice(0, 10)}. Left of the ridge at `,
        { n: roofline.ridge_flop_per_byte, unit: 'FLOP/byte' },
        ' bandwidth is the limit, right of it compute. The lines are bandwidths at the largest working set of each level; the roof of a stage may lie between them. Diamonds are whole stages, triangles classes of prefill, circles classes of decode.',
      ],
    },
    {
      type: 'chart',
      label: `Roofline, log-log: ${roofs.map(({ level }) => level).join(', ')}`,
      chart: rooflineChart(data, roofline, places),
      behind: tableOf(
        'Measured points',
        [
          { id: 'stage', head: 'stage', cell: ({ stage }) => stage },
          {
            id: 'class',
            head: 'class',
            cell: (point) =>
              linked(
                places?.get(pointPlace(point.stage, point.class)),
                point.class === null ? 'whole stage' : classLabels[point.class],
              ),
          },
          {
            id: 'flop_per_byte',
            head: 'FLOP/byte',
            numeric: true,
            cell: ({ intensity }) => ({ n: intensity, unit: '' }),
          },
          {
            id: 'flops_per_s',
            head: 'achieved',
            numeric: true,
            cell: (point) => ({ n: point.flops_per_s, unit: 'FLOP/s' }),
          },
        ],
        rooflinePoints(data),
      ),
    },
    { type: 'fold', title: 'Measured roofs', blocks: cpuTables(roofline) },
  ]);
}

/** Parts of the peak, largest first, the residual last. */
export function memoryParts({ breakdown }: MemoryResult): MemoryResult['breakdown'] {
  const residualLast = (part: MemoryResult['breakdown'][number]): number =>
    part.component === 'residual' ? 1 : 0;
  return breakdown.toSorted((a, b) => residualLast(a) - residualLast(b) || b.bytes - a.bytes);
}

export function memorySection({ memory, latency }: ProfileResult): Section {
  const section = (blocks: Block[]): Section => ({ id: 'memory', title: 'Memory', level: 2, blocks });
  if (!memory)
    return section([
      { type: 'missing', what: 'Memory was not sampled.', why: 'The session has no memory rows.' },
    ]);
  const points: [string, Figure][] = [
    [pointLabels.baseline, memory.baseline_bytes],
    [pointLabels.post_warmup, memory.post_warmup_bytes],
    [pointLabels.peak, memory.peak_bytes],
  ];
  return section([
    ...(latency.launches > 1
      ? [
          {
            type: 'text',
            text: `Measured in the first of ${latency.launches} process launches; the others ran the same workload.`,
          } satisfies Block,
        ]
      : []),
    {
      type: 'chart',
      level: 3,
      label: `Resident memory over time with ${points.map(([name]) => name).join(', ')} marked`,
      chart: memoryChart(memory),
      behind: tableOf(
        'At most 100 samples, evenly spread',
        [
          { id: 'time_ms', head: 'time', numeric: true, cell: ({ t_ms }) => ms(t_ms) },
          { id: 'bytes', head: 'resident', numeric: true, cell: ({ bytes }) => ({ n: bytes, unit: 'B' }) },
        ],
        evenlySpaced(memory.series, 100),
      ),
    },
    {
      type: 'fold',
      level: 3,
      title: 'Timeline',
      blocks: [
        tableOf(
          'Stages',
          [
            { id: 'phase', head: 'stage', cell: ({ label }) => label },
            { id: 'from_ms', head: 'from', numeric: true, cell: ({ start_ms }) => ms(start_ms) },
            { id: 'to_ms', head: 'to', numeric: true, cell: ({ end_ms }) => ms(end_ms) },
          ],
          memory.phases,
        ),
      ],
    },
    tableOf(
      'Memory points',
      [
        { id: 'point', head: 'point', cell: ([name]) => name },
        { id: 'bytes', head: 'memory', numeric: true, cell: ([, figure]) => ({ figure }) },
        {
          id: 'source',
          head: 'measured by',
          wraps: true,
          cell: ([, figure]) => (figure.value === null ? { missing: figure.reason.text } : figure.source),
        },
      ],
      points,
    ),
    memory.breakdown.length === 0
      ? {
          type: 'missing',
          what: 'The peak has no breakdown:',
          why: "the model's dimensions or the peak are missing.",
        }
      : tableOf(
          'Parts of the peak; the residual has no evidence',
          [
            { id: 'part', head: 'part of the peak', cell: ({ component }) => componentNames[component] },
            { id: 'bytes', head: 'memory', numeric: true, cell: ({ bytes }) => ({ n: bytes, unit: 'B' }) },
            { id: 'confidence', head: 'confidence', cell: ({ confidence }) => confidence },
            { id: 'evidence', head: 'evidence', wraps: true, lines: true, cell: ({ evidence }) => evidence },
          ],
          memoryParts(memory),
        ),
  ]);
}

export function latencySection({ latency }: ProfileResult): Section {
  const { decode_step_percentiles_ms: percentiles, decode_step_by_index_ms: steps } = latency;
  return {
    id: 'latency',
    title: 'Latency',
    level: 2,
    blocks: [
      {
        type: 'text',
        text: `${plural(latency.repeats, 'timed repeat')} in ${plural(latency.launches, 'process launch', 'process launches')}, after ${plural(latency.warmup_repeats, 'warm-up repeat')} that are not counted. Intervals are over ${intervalsOver(latency)}. No repeat is left out; outliers are marked by a triangle.`,
      },
      figureTable('Latency and throughput', [
        ['TTFT', latency.ttft_ms],
        ['TPOT', latency.tpot_ms],
        ['end to end', latency.e2e_ms],
        ['input tokens / TTFT', latency.prefill_tokens_per_s],
        ['decode throughput', latency.decode_tokens_per_s],
        ['output tokens / end to end', latency.output_tokens_per_s],
      ]),
      ...(percentiles
        ? [
            {
              type: 'table',
              title: 'Percentiles of all timed decode steps',
              columns: Object.keys(percentiles).map((id) => ({ id: `${id}_ms`, head: id, numeric: true })),
              rows: [{ cells: Object.values(percentiles).map(ms) }],
            } satisfies Block,
          ]
        : []),
      {
        type: 'chart',
        level: 3,
        half: true,
        title: 'Every repeat',
        label: 'TTFT, TPOT and end-to-end time of every timed repeat',
        chart: repeatsChart(latency),
        behind: repeatTable(latency),
      },
      steps.length === 0
        ? { type: 'missing', what: 'No decode step was timed.', why: 'One output token has no decode step.' }
        : {
            type: 'chart',
            level: 3,
            half: true,
            title: 'Decode steps as the context grows',
            label: 'Mean decode step time by step index',
            chart: stepsChart(latency),
            behind: {
              type: 'table',
              title: 'Mean over repeats',
              columns: [
                { id: 'step', head: 'step', numeric: true },
                { id: 'time_ms', head: 'time', numeric: true },
              ],
              rows: steps.map((time, index) => ({ cells: [{ count: index + 1 }, ms(time)] })),
            },
          },
    ],
  };
}

function repeatTable({ per_repeat: repeats }: LatencyResult): Block {
  const labels = repeatLabels(repeats);
  return {
    type: 'table',
    title: 'Repeats in the order they ran',
    columns: [
      { id: 'launch_repeat', head: 'launch.repeat', numeric: true },
      { id: 'iteration', head: 'iteration', numeric: true },
      { id: 'ttft_ms', head: 'TTFT', numeric: true },
      { id: 'tpot_ms', head: 'TPOT', numeric: true },
      { id: 'e2e_ms', head: 'end to end', numeric: true },
      { id: 'outlier', head: '' },
    ],
    rows: repeats.map((repeat, index) => ({
      cells: [
        labels[index] ?? '',
        { count: repeat.iteration },
        ms(repeat.ttft_ms),
        repeat.tpot_ms === null ? { missing: 'one output token has no TPOT' } : ms(repeat.tpot_ms),
        ms(repeat.e2e_ms),
        repeat.outlier ? 'outlier' : '',
      ],
    })),
  };
}

export function telemetrySection({ telemetry }: ProfileResult): Section {
  return {
    id: 'telemetry',
    title: 'Host telemetry',
    level: 2,
    blocks: telemetry
      ? [
          figureTable('Mean during the timed repeats', [
            ['CPU of the host, all cores', telemetry.cpu_percent],
            ['other processes, 100 % is one core', telemetry.other_processes_cpu_percent],
            ['core clock', telemetry.clock_mhz],
            ['sampling rate', telemetry.sample_hz],
          ]),
          ...(telemetry.series.length > 0
            ? [samplesBlock(telemetry.series, 'Utilization, clock and memory of the host over time')]
            : []),
        ]
      : [{ type: 'missing', what: 'The host was not sampled.', why: 'The session has no telemetry rows.' }],
  };
}
