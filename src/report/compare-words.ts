import type { Change, CompareResult, KernelChange } from '../model/documents/compare.js';
import { formatCount, formatMs, formatPercent, noValue } from './format.js';

/** Words of a comparison that terminal and page share. */

/** A, B, C …: sessions by letter, so that columns stay narrow. */
export function letter(index: number): string {
  return index < 26 ? String.fromCharCode(65 + index) : `S${index + 1}`;
}

/** "A  llm-b1 (20261121-…)" of every session. */
export function sessionLine({ name, id, title }: CompareResult['sessions'][number], index: number): string {
  return `${letter(index)}  ${name ?? id} · ${title}`;
}

/** "−3.1 ms, −28 %", with "?" where it lies within the spread of both. */
export function changeWords(change: Change): string {
  if (!change) return noValue;
  const sign = change.delta_ms > 0 ? '+' : '';
  const part = change.ratio === null ? '' : `, ${ratioWords(change.ratio)}`;
  return `${sign}${formatMs(change.delta_ms)}${part}${change.significant === false ? ' ?' : ''}`;
}

/** "+12 %", "−28 %", "×3.2" from twice on. */
export function ratioWords(ratio: number): string {
  if (ratio >= 2) return `×${ratio.toFixed(1)}`;
  return `${ratio > 1 ? '+' : ''}${formatPercent(ratio - 1)}`;
}

export const statusWords: Record<KernelChange, string> = {
  new: 'new',
  gone: 'gone',
  faster: 'faster',
  slower: 'slower',
  more: 'more often',
  fewer: 'less often',
  same: 'same',
};

/** "15.2", "182": calls in a mean instance. */
export function countWords(count: number): string {
  return Number.isInteger(count) || count >= 100 ? formatCount(Math.round(count)) : count.toFixed(1);
}

/** Of a class without a value: the phase ran and its kernels or operators were not recorded, or there is no such phase. */
export function notRecorded(stages: CompareResult['stages'], phase: string, session: number): string {
  return stages.find((stage) => stage.phase === phase)?.values[session] ? 'not recorded' : noValue;
}
