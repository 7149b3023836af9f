import type { Block, Part, Text, Value } from './block.js';
import { type ColumnOf, rowsOf } from './table-of.js';
import { formatSetting, formatCount, formatNumber } from '../vocabulary/format.js';
import { scopeLabel } from '../vocabulary/sampled-metrics.js';

/** One GPU at one moment in the live view. */
export interface LiveGpu {
  scope: string;
  name: string | null;
  utilizationPercent: number | null;
  memoryUsedBytes: number | null;
  memoryTotalBytes: number | null;
  powerW: number | null;
  powerLimitW: number | null;
  smClockMhz: number | null;
  temperatureC: number | null;
  /** Throttle reasons as text; empty without any; null if not reported. */
  limitedBy: readonly string[] | null;
  pcieTxMbPerS: number | null;
  pcieRxMbPerS: number | null;
  processes: number | null;
}

interface LiveHost {
  cpuPercent: number | null;
  memoryUsedBytes: number;
  memoryTotalBytes: number;
  treeCores: number | null;
  treeRssBytes: number | null;
}

export interface LiveState {
  title: string;
  seconds: number;
  gpus: readonly LiveGpu[];
  host: LiveHost;
  /** Values of the last minute, one per second, newest last, by "gpu0 utilization", "gpu0 power", "host cpu". */
  history: ReadonlyMap<string, readonly (number | null)[]>;
}

/** Time span of a sparkline, and of one of its cells, s. */
export const liveSeconds = 60;
const cellSeconds = 6;
const levels = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/** The last minute scaled from 0 to `max`: the mean of six seconds per cell, newest on the right, a space for missing values. */
export function sparkline(values: readonly (number | null)[], max: number): string {
  const minute = [...Array<null>(Math.max(0, liveSeconds - values.length)).fill(null), ...values].slice(
    -liveSeconds,
  );
  return Array.from({ length: liveSeconds / cellSeconds }, (_, cell) => {
    const cellValues = minute
      .slice(cell * cellSeconds, (cell + 1) * cellSeconds)
      .filter((value) => value !== null);
    if (cellValues.length === 0 || !(max > 0)) return ' ';
    const mean = cellValues.reduce((sum, value) => sum + value, 0) / cellValues.length;
    return levels[Math.min(levels.length - 1, Math.max(0, Math.floor((mean / max) * levels.length)))]!;
  }).join('');
}

const notRead = { missing: 'not read' };
const rounded = (value: number | null, unit: string): Value | string =>
  value === null ? notRead : formatSetting(Math.round(value), unit);
const outOf = (value: number | null, max: number | null, unit: string): Text =>
  value === null || max === null ? rounded(value, unit) : [`${formatCount(value)}/`, rounded(max, unit)];

/** Used and total memory, GiB. */
function memory({ memoryUsedBytes: used, memoryTotalBytes: total }: LiveGpu | LiveHost): Text {
  if (used === null) return notRead;
  const gib = formatNumber(used / 2 ** 30);
  return total === null ? gib : `${gib}/${formatNumber(total / 2 ** 30)}`;
}

function limitText({ limitedBy }: LiveGpu): Text {
  if (limitedBy === null) return notRead;
  return limitedBy.length === 0 ? 'nothing' : { text: limitedBy.join(', '), tone: 'fault' };
}

const number = { numeric: true } as const;

/** The live view: GPUs with utilization and power of the last minute, then the host. */
export function liveBlocks({ title, seconds, gpus, host, history }: LiveState): Block[] {
  const valuesOf = (key: string) => history.get(key) ?? [];
  const powerLine = ({ scope, powerLimitW }: LiveGpu): string => {
    const power = valuesOf(`${scope} power`);
    return sparkline(power, powerLimitW ?? Math.max(1, ...power.map((value) => value ?? 0)));
  };
  const columns: ColumnOf<LiveGpu>[] = [
    { id: 'gpu', head: 'GPU', cell: ({ scope }) => scopeLabel(scope) },
    { id: 'busy', head: 'busy', ...number, cell: (gpu) => rounded(gpu.utilizationPercent, '%') },
    {
      id: 'busy_minute',
      head: 'last minute',
      drop: 4,
      cell: ({ scope }) => sparkline(valuesOf(`${scope} utilization`), 100),
    },
    { id: 'memory', head: 'mem GiB', ...number, cell: memory },
    { id: 'power', head: 'power', ...number, cell: (gpu) => outOf(gpu.powerW, gpu.powerLimitW, 'W') },
    { id: 'power_minute', head: 'last minute', drop: 1, cell: powerLine },
    { id: 'sm_clock', head: 'SM clock', ...number, cell: (gpu) => rounded(gpu.smClockMhz, 'MHz') },
    { id: 'temperature', head: 'temp', ...number, drop: 3, cell: (gpu) => rounded(gpu.temperatureC, '°C') },
    { id: 'throttled', head: 'throttled by', wraps: true, cell: limitText },
    {
      id: 'pcie_out',
      head: 'PCIe out',
      ...number,
      drop: 2,
      cell: (gpu) => rounded(gpu.pcieTxMbPerS, 'MB/s'),
    },
    { id: 'pcie_in', head: 'PCIe in', ...number, drop: 2, cell: (gpu) => rounded(gpu.pcieRxMbPerS, 'MB/s') },
    { id: 'processes', head: 'procs', ...number, drop: 0, cell: (gpu) => rounded(gpu.processes, '') },
  ];
  const names = [...new Set(gpus.flatMap(({ name }) => name ?? []))];
  return [
    { type: 'heading', text: `${title} · ${clock(seconds)} · stop with Ctrl-C` },
    ...(gpus.length > 0
      ? [{ type: 'table', title: 'GPUs', columns, rows: rowsOf(columns, gpus) } as const]
      : []),
    ...(names.length > 0 ? [{ type: 'text', text: { text: names.join(', '), tone: 'dim' } } as const] : []),
    {
      type: 'facts',
      items: [
        {
          name: 'host',
          text: hostParts(host, ` ${sparkline(valuesOf('host cpu'), 100)}`),
        },
      ],
    },
  ];
}

/** 75 → "1:15". */
function clock(seconds: number): string {
  const wholeSeconds = Math.floor(seconds);
  const remainder = wholeSeconds % 60;
  return `${(wholeSeconds - remainder) / 60}:${String(remainder).padStart(2, '0')}`;
}

const hostParts = (host: LiveHost, cpuLine = ''): Part[] => [
  'CPU ',
  rounded(host.cpuPercent, '%'),
  `${cpuLine} · memory `,
  ...([memory(host)].flat() as Part[]),
  ' GiB',
  ...(host.treeCores === null
    ? []
    : [
        ' · watched ',
        { n: host.treeCores, unit: '', digits: 2 },
        ' cores',
        ...(host.treeRssBytes === null ? [] : [', ', { n: host.treeRssBytes, unit: 'B' }]),
      ]),
];

/** One log line per second, without missing values. */
export function liveLine({ seconds, gpus, host }: LiveState): Part[] {
  const partsOf = (gpu: LiveGpu): Part[] =>
    [
      rounded(gpu.utilizationPercent, '%'),
      gpu.memoryUsedBytes === null ? notRead : [...([memory(gpu)].flat() as Part[]), ' GiB'],
      outOf(gpu.powerW, gpu.powerLimitW, 'W'),
      rounded(gpu.smClockMhz, 'MHz'),
      rounded(gpu.temperatureC, '°C'),
      ...(gpu.limitedBy?.length ? [`throttled by ${gpu.limitedBy.join(', ')}`] : []),
    ].flatMap((text) => (text === notRead ? [] : [' ', ...([text].flat() as Part[])]));
  return [
    `${formatSetting(Math.round(seconds), 's').padStart(7)}  `,
    ...gpus.flatMap((gpu) => [scopeLabel(gpu.scope), ...partsOf(gpu), ' · ']),
    'host ',
    ...hostParts(host),
  ];
}
