import type { AllocatorMoment, MemoryResult } from '../model/documents/memory-result.js';
import { componentLabels } from '../vocabulary/memory-components.js';
import { allocatorStageLabel } from '../vocabulary/memory-points.js';
import type { Block, Column, Section, Text } from './block.js';
import type { Chart } from './chart.js';
import {
  allocatorDevices,
  allocatedPartBytes,
  allocatedParts,
  mainSeries,
  momentsOf,
  shortPlace,
} from './memory-series.js';
import { allocationsChart, reservedChart, stackChart, timelineChart } from './memory-charts.js';
import { samplesTable } from './samples.js';

const secondsText = (n: number): Text => ({ n, unit: 's' });
const bytesText = (bytes: number | null): Text =>
  bytes === null ? { missing: 'the framework did not report it' } : { n: bytes / 1e9, unit: 'GB', digits: 4 };
const numeric = (id: string, head: string): Column => ({ id, head, numeric: true });
const deviceName = (gpu: number | null): string => (gpu === null ? 'host' : `GPU ${gpu}`);

const kindLabels: Readonly<Record<string, string>> = { used: 'in use', process: 'process', rss: 'resident' };

/** Memory samples over the run, with its phases. */
export function timelineSection(data: MemoryResult): Section {
  const series = mainSeries(data);
  const { sampling } = data.profile.metadata;
  const section = (blocks: Block[]): Section => ({ id: 'timeline', title: 'Over time', level: 2, blocks });
  if (series.length === 0)
    return section([
      {
        type: 'missing',
        what: 'There are no samples of memory over time.',
        why:
          sampling.samples > 0
            ? 'A profile file has no samples; the session that measured it has them.'
            : 'Neither a GPU driver nor the processes of the engine could be read.',
      },
    ]);
  return section([
    {
      type: 'text',
      text: [
        { count: sampling.samples, unit: 'samples' },
        ` by ${sampling.source}`,
        ...(sampling.hz === null ? [] : [', ', { n: sampling.hz, unit: '' }, ' per second']),
      ],
    },
    {
      type: 'chart',
      level: 3,
      label: 'Memory over the run with baseline, warm-up and peak marked',
      chart: timelineChart(data),
      behind: samplesTable(
        series.map(({ label, kind, points }) => ({
          scope: label,
          metric: kind,
          unit: 'GB',
          points: points.map(({ t_s, bytes }): [number, number] => [t_s * 1e3, bytes / 1e9]),
        })),
        { scope: (label) => label, metric: (kind) => kindLabels[kind] ?? kind },
      ),
    },
    {
      type: 'table',
      title: 'Stages',
      columns: [{ id: 'phase', head: 'stage' }, numeric('from_s', 'from'), numeric('to_s', 'to')],
      rows: data.timeline.phases.map(({ label, start_s, end_s }) => ({
        cells: [allocatorStageLabel(label), secondsText(start_s), secondsText(end_s)],
      })),
    },
  ]);
}

/** Memory of the framework's allocator, and reserved memory that was never allocated. */
export function allocatorSections(data: MemoryResult): Section[] {
  const devices = allocatorDevices(data);
  const devicesWithReserved = devices.filter((gpu) =>
    momentsOf(data, gpu).some(({ reserved_bytes: bytes }) => bytes !== null),
  );
  return [
    ...(devices.length === 0
      ? []
      : [
          {
            id: 'allocator',
            title: 'Framework allocator',
            level: 2 as const,
            blocks: [
              {
                type: 'text' as const,
                level: 3 as const,
                text: 'Framework allocator, stacked: weights, KV cache, peak of other allocations (activations and temporaries), and further reserved memory. The line is memory sampled from outside: the difference is CUDA context, kernels and libraries.',
              },
              ...devices.map((gpu) =>
                deviceChart(data, gpu, stackChart(data, gpu), 'Allocator memory over time', [
                  ...allocatedParts.map((name): MomentColumn => [
                    {
                      ...numeric(`${name}_gb`, componentLabels[name]),
                      // Equals reserved − peak allocated, the next columns.
                      ...(name === 'allocator_reserve' ? { drop: 0 } : {}),
                    },
                    (moment) => allocatedPartBytes(moment, name),
                  ]),
                  peakAllocated,
                  reserved,
                ]),
              ),
            ],
          },
        ]),
    ...(devicesWithReserved.length === 0
      ? []
      : [
          {
            id: 'fragmentation',
            title: 'Reserved and allocated',
            level: 2 as const,
            blocks: [
              {
                type: 'text' as const,
                level: 3 as const,
                text: 'The allocator keeps reserved memory. Reserved memory that is never allocated is lost to fragmentation and rounding; expandable segments or fewer distinct sizes reduce it.',
              },
              ...devicesWithReserved.map((gpu) => ({
                ...deviceChart(data, gpu, reservedChart(data, gpu), 'Reserved against allocated memory', [
                  [numeric('allocated_gb', 'allocated'), (moment) => moment.allocated_bytes],
                  peakAllocated,
                  reserved,
                ]),
                level: 3 as const,
              })),
              ...fragmentationTable(data),
            ],
          },
        ]),
  ];
}

type MomentColumn = [Column, (moment: AllocatorMoment) => number | null];
const peakAllocated: MomentColumn = [
  numeric('max_allocated_gb', 'peak allocated'),
  (moment) => moment.max_allocated_bytes,
];
const reserved: MomentColumn = [numeric('reserved_gb', 'reserved'), (moment) => moment.reserved_bytes];

/** Chart of one device, with a table of its stages. */
function deviceChart(
  data: MemoryResult,
  gpu: number | null,
  chart: Chart,
  label: string,
  columns: readonly MomentColumn[],
): Block {
  return {
    type: 'chart',
    title: deviceName(gpu),
    label: `${label}, ${deviceName(gpu)}`,
    chart,
    behind: {
      type: 'table',
      title: 'By stage; maximum over repeats of a stage',
      columns: [
        { id: 'stage', head: 'stage' },
        { ...numeric('rank', 'rank'), drop: 1 },
        { ...numeric('t_s', 'end'), drop: 2 },
        ...columns.map(([column]) => column),
      ],
      rows: momentsOf(data, gpu).map((moment) => ({
        cells: [
          allocatorStageLabel(moment.stage),
          { count: moment.rank },
          secondsText(moment.t_s),
          ...columns.map(([, bytesOf]) => bytesText(bytesOf(moment))),
        ],
      })),
    },
  };
}

const fragmentationTable = ({ fragmentation }: MemoryResult): Block[] =>
  fragmentation.length === 0
    ? []
    : [
        {
          type: 'table',
          title: 'Peaks of each GPU',
          columns: [
            { id: 'gpu', head: 'GPU' },
            numeric('reserved_gb', 'peak reserved'),
            numeric('max_allocated_gb', 'peak allocated'),
            numeric('unused_gb', 'never allocated'),
            numeric('unused_share', 'share'),
            { ...numeric('inactive_split_gb', 'inactive split at the end'), drop: 1 },
          ],
          rows: fragmentation
            .toSorted((a, b) => a.gpu - b.gpu)
            .map((row) => ({
              cells: [
                `GPU ${row.gpu}`,
                bytesText(row.reserved_bytes),
                bytesText(row.max_allocated_bytes),
                bytesText(row.reserved_bytes - row.max_allocated_bytes),
                { n: row.unused_share, unit: 'ratio' },
                bytesText(row.inactive_split_bytes),
              ],
            })),
        },
      ];

/** Maximum rows on a page and in text; a snapshot of a large model has thousands of places. */
const maxRows = { page: 300, text: 20 };

/** Live allocations at the allocator's peak, by call site. */
export function allocationsSection({ allocations }: MemoryResult): Section[] {
  const all = allocations ?? [];
  const gpus = [...new Set(all.map(({ gpu }) => gpu))].toSorted((a, b) => a - b);
  if (gpus.length === 0) return [];
  return [
    {
      id: 'allocations',
      title: 'Allocations by call site',
      level: 2,
      blocks: [
        {
          type: 'text',
          text: "Live allocations at the allocator's peak, by call site, in one recorded warm-up repeat.",
        },
        ...gpus.map((gpu): Block => {
          const rows = all.filter((row) => row.gpu === gpu);
          return {
            type: 'chart',
            ...(gpus.length > 1 ? { title: deviceName(gpu) } : {}),
            label: `The largest allocations on ${deviceName(gpu)} by call site`,
            chart: allocationsChart(rows),
            behind: {
              type: 'table',
              title:
                rows.length > maxRows.page
                  ? ['The ', { count: maxRows.page }, ' largest of ', { count: rows.length }]
                  : 'Every call site',
              filter: true,
              columns: [
                { id: 'place', head: 'call site', wraps: true },
                { id: 'stage', head: 'stage' },
                numeric('memory_gb', 'memory'),
                numeric('blocks', 'blocks'),
              ],
              rows: rows.slice(0, maxRows.page).map(({ operator, stage, bytes, blocks }, index) => ({
                ...(index < maxRows.text ? {} : { level: 3 as const }),
                cells: [
                  { text: shortPlace(operator), hint: operator },
                  stage,
                  bytesText(bytes),
                  blocks === null ? { missing: 'not in the snapshot' } : { count: blocks },
                ],
              })),
            },
          };
        }),
      ],
    },
  ];
}
