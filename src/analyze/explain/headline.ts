import type { ExplainResult, StageWaterfall } from '../../model/documents/explain.js';
import { leadStage } from './sentences.js';

/** "decode 13.1 ms, 2.1x roofline": the time of the first stage, per instance, without the profiler where that is known. */
export function headlineOf({ stages }: Pick<ExplainResult, 'stages'>): string | null {
  const stage = leadStage(stages);
  if (!stage) return null;
  const { kind, clean_ms: clean, measured_ms: measured, roofline_ms: roofline } = stage;
  const ms = clean.value ?? measured.value;
  if (ms === null) return null;
  const times = roofline.value ? `, ${digits(ms / roofline.value)}x roofline` : '';
  return `${kind === 'outside' ? 'capture' : kind} ${timeText(ms)}${per[kind] ?? ''}${times}`;
}

const per: Partial<Record<StageWaterfall['kind'], string>> = { decode: '/step', mixed: '/step' };

function timeText(ms: number): string {
  if (ms >= 1000) return `${digits(ms / 1000)} s`;
  return ms >= 0.1 ? `${digits(ms)} ms` : `${digits(1000 * ms)} µs`;
}

/** Three significant digits; a list has no room for an interval. */
const digits = (value: number): string =>
  value >= 100 ? Math.round(value).toString() : Number(value.toPrecision(3)).toString();
