import { formatBytes, formatNumber, noValue } from '../format.js';
import { colour } from './colour.js';
import { textTable } from './table.js';
import { inert, textWidth, withPlainSpaces } from './text.js';

/** One GPU at a moment, as the live view shows it. */
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
  /** What holds the clocks down, in words; empty when nothing does; null where nobody tells. */
  limitedBy: readonly string[] | null;
  pcieTxMbPerS: number | null;
  pcieRxMbPerS: number | null;
  processes: number | null;
}

export interface LiveHost {
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
  /** Of the last minute, one a second, newest last: by "gpu0 utilization", "gpu0 power", "host cpu". */
  history: ReadonlyMap<string, readonly (number | null)[]>;
}

const cells = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/** The newest `width` values between 0 and `full`; a space where there is none. */
export function sparkline(values: readonly (number | null)[], full: number, width: number): string {
  return values
    .slice(-width)
    .map((value) => {
      if (value === null || !(full > 0)) return ' ';
      const level = Math.floor((value / full) * cells.length);
      return cells[Math.min(cells.length - 1, Math.max(0, level))]!;
    })
    .join('')
    .padStart(width);
}

const whole = (value: number | null, unit: string) =>
  value === null ? noValue : `${Math.round(value)}${unit === '' ? '' : ` ${unit}`}`;
const outOf = (value: number | null, most: number | null, unit: string) =>
  value === null
    ? noValue
    : most === null
      ? whole(value, unit)
      : `${Math.round(value)}/${Math.round(most)} ${unit}`;
const clock = (seconds: number) =>
  `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`;

function gib(gpu: Pick<LiveGpu, 'memoryUsedBytes' | 'memoryTotalBytes'>): string {
  if (gpu.memoryUsedBytes === null) return noValue;
  const used = (gpu.memoryUsedBytes / 2 ** 30).toFixed(1);
  return gpu.memoryTotalBytes === null
    ? `${used} GiB`
    : `${used}/${Math.round(gpu.memoryTotalBytes / 2 ** 30)} GiB`;
}

function limited(gpu: LiveGpu): string {
  if (gpu.limitedBy === null) return noValue;
  return gpu.limitedBy.length === 0 ? 'nothing' : colour.yellow(gpu.limitedBy.join(', '));
}

function traffic({ pcieTxMbPerS: tx, pcieRxMbPerS: rx }: LiveGpu): string {
  return tx === null && rx === null ? noValue : `${whole(tx, '')}/${whole(rx, '')}`;
}

/** The refreshing view: GPUs with the last minute of utilisation and power, then the host. */
export function liveView({ title, seconds, gpus, host, history }: LiveState, width: number): string {
  const head = `${title} · ${clock(seconds)}`;
  const hint = 'Ctrl-C ends it';
  const space = width - textWidth(head) - hint.length - 2;
  const lines = [
    space > 0 ? `${colour.bold(head)}${' '.repeat(space)}${colour.dim(hint)}` : colour.bold(head),
    '',
  ];
  // All columns but the two of the last minute take 97 cells.
  const wide = width >= 118;
  const spark = wide ? Math.min(60, Math.floor((width - 97) / 2)) : 10;
  const of = (key: string) => history.get(key) ?? [];
  if (gpus.length > 0) {
    const rows = gpus.map((gpu) => {
      const power = of(`${gpu.scope} power`);
      const full = gpu.powerLimitW ?? Math.max(1, ...power.map((value) => value ?? 0));
      return [
        gpu.scope,
        whole(gpu.utilizationPercent, '%'),
        sparkline(of(`${gpu.scope} utilization`), 100, spark),
        gib(gpu),
        outOf(gpu.powerW, gpu.powerLimitW, 'W'),
        ...(wide ? [sparkline(power, full, spark)] : []),
        whole(gpu.smClockMhz, 'MHz'),
        whole(gpu.temperatureC, '°C'),
        limited(gpu),
        ...(wide ? [traffic(gpu), gpu.processes === null ? noValue : String(gpu.processes)] : []),
      ];
    });
    const right = (text: string) => ({ head: text, align: 'right' as const });
    const columns = [
      { head: 'GPU' },
      right('busy'),
      { head: 'last minute' },
      right('memory'),
      right('power'),
      ...(wide ? [{ head: 'last minute' }] : []),
      right('SM clock'),
      right('temp'),
      { head: 'throttled by', flexible: true },
      ...(wide ? [right('PCIe out/in MB/s'), right('procs')] : []),
    ];
    lines.push(textTable(columns, rows, { width }), '');
    const names = [...new Set(gpus.map(({ name }) => name).filter((name) => name !== null))];
    if (names.length > 0) lines.push(`  ${colour.dim(inert(names.join(', ')))}`);
  }
  const parts = [
    `CPU ${whole(host.cpuPercent, '%')} ${sparkline(of('host cpu'), 100, spark)}`,
    `memory ${gib(host)}`,
    ...(host.treeCores === null
      ? []
      : [
          `watched ${formatNumber(host.treeCores, 2)} cores, ${host.treeRssBytes === null ? noValue : formatBytes(host.treeRssBytes)}`,
        ]),
  ];
  lines.push(`  host  ${parts.join(' · ')}`);
  return withPlainSpaces(lines.join('\n'));
}

/** One line a second, for logs. */
export function liveLine({ seconds, gpus, host }: LiveState): string {
  const of = (gpu: LiveGpu) => {
    const parts = [
      gpu.scope,
      whole(gpu.utilizationPercent, '%'),
      gib(gpu),
      outOf(gpu.powerW, gpu.powerLimitW, 'W'),
      whole(gpu.smClockMhz, 'MHz'),
      whole(gpu.temperatureC, '°C'),
      ...(gpu.limitedBy === null || gpu.limitedBy.length === 0
        ? []
        : [`throttled by ${gpu.limitedBy.join(', ')}`]),
    ];
    return parts.filter((part) => part !== noValue).join(' ');
  };
  const tree = host.treeCores === null ? '' : `, watched ${formatNumber(host.treeCores, 2)} cores`;
  const about = `host CPU ${whole(host.cpuPercent, '%')} memory ${gib(host)}${tree}`;
  return withPlainSpaces(`${seconds.toFixed(0).padStart(5)} s  ${[...gpus.map(of), about].join(' · ')}`);
}
