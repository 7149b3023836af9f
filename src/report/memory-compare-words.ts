import type { MemoryChange, MemoryCompareResult } from '../model/documents/memory-compare.js';
import { formatQuantity, nbsp, noValue } from './format.js';
import { componentWords, gbText } from './memory-words.js';

const pointWords: Record<string, string> = {
  baseline: 'baseline',
  post_warmup: 'after warm-up',
  peak: 'peak',
  memory_increase: 'peak − baseline',
  warmup_increase: 'after warm-up − baseline',
  growth: 'peak − after warm-up',
};

const latencyWords: Record<string, string> = {
  mean_latency: 'mean latency',
  mean_ttft: 'mean TTFT',
  mean_tpot: 'mean TPOT',
  tokens_per_second: 'output tokens/s',
};

export const changeName = (name: string): string =>
  pointWords[name] ??
  latencyWords[name] ??
  (componentWords as Record<string, string>)[name] ??
  name.replaceAll('_', ' ');

/** +1.234 GB; without a sign where all shown digits are 0. */
export function signedGb(gb: number | null): string {
  if (gb === null) return noValue;
  if (Math.abs(gb) < 0.0005) return gbText(0);
  return gb > 0 ? `+${gbText(gb)}` : gbText(gb);
}

/** +12.3 %, one decimal: differences of memory are small and exact. */
export function signedPercent(share: number | null): string {
  if (share === null) return noValue;
  const percent = (Math.abs(share) * 100).toFixed(1);
  const sign = percent === '0.0' ? '' : share > 0 ? '+' : '−';
  return `${sign}${percent}${nbsp}%`;
}

/** base, now, difference in GB and in %. */
export const changeCells = ({
  base_gb,
  now_gb,
  change_gb,
  change_share,
}: MemoryChange): [string, string, string, string] => [
  gbText(base_gb),
  gbText(now_gb),
  signedGb(change_gb),
  signedPercent(change_share),
];

export const latencyCells = ({
  unit,
  base,
  now,
  change_share,
}: MemoryCompareResult['latency'][number]): [string, string, string, string] => [
  base === null ? noValue : formatQuantity(base, unit),
  now === null ? noValue : formatQuantity(now, unit),
  base === null || now === null ? noValue : `${now > base ? '+' : ''}${formatQuantity(now - base, unit)}`,
  signedPercent(change_share),
];

export const sideWords = ({ label, model, engine }: MemoryCompareResult['base']): string =>
  [label, model, engine].filter((part) => part !== null).join(' · ');

export interface ChangeTable {
  title: string;
  rows: string[][];
}

/** The tables of a comparison, in the order of reading: name, base, now, difference in GB and %, and what more there is. */
export function changeTables(data: MemoryCompareResult): ChangeTable[] {
  const levels = ({ base_confidence: a, now_confidence: b }: MemoryCompareResult['components'][number]) =>
    a === b ? (a ?? '') : `${a ?? noValue} → ${b ?? noValue}`;
  return [
    {
      title: 'The three points',
      rows: data.points.map((row) => [changeName(row.name), ...changeCells(row)]),
    },
    {
      title: 'Components at the peak',
      rows: data.components.map((row) => [changeName(row.name), ...changeCells(row), levels(row)]),
    },
    ...(data.gpus.length > 1
      ? [{ title: 'Peak of each GPU', rows: data.gpus.map((row) => [row.name, ...changeCells(row)]) }]
      : []),
    { title: 'Latency', rows: data.latency.map((row) => [changeName(row.name), ...latencyCells(row)]) },
  ].filter(({ rows }) => rows.length > 0);
}
