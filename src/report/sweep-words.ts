import type { SweepOutcome, SweepResult, SweepRun } from '../model/documents/sweep.js';
import { formatBytes, formatCount, formatNumber, formatQuantity, nbsp, noValue } from './format.js';
import { outcomeLabels } from '../vocabulary/sweep.js';

export {
  figureLabel as figureName,
  outcomeLabels as sweepOutcomeWords,
  parameterLabel as parameterName,
} from '../vocabulary/sweep.js';

/** Figures of the summary tables, of those that the runs have; the CSV has all. */
const shownFigures = [
  'peak_gb',
  'total_measured_gb',
  'model_weights_gb',
  'kv_cache_gb',
  'activations_gb',
  'framework_overhead_gb',
  'mean_latency_ms',
  'tokens_per_second',
  'ttft_ms',
  'tpot_ms',
  'output_tokens_per_s',
  'memory_bytes',
  'peak_bytes',
  'median_ns',
  'roof_share',
  'predicted_ms',
  'roofline_ms',
  'wall_ms',
  'idle_share',
];

/** A figure with the unit its name ends in. */
export function figureText(name: string, value: number | null | undefined): string {
  if (value === null || value === undefined) return noValue;
  if (name.endsWith('_gb')) return formatQuantity(value, 'GB', 4);
  if (name.endsWith('_ms')) return formatQuantity(value, 'ms');
  if (name.endsWith('_ns')) return formatQuantity(value, 'ns');
  if (name.endsWith('_bytes')) return formatBytes(value);
  if (name.endsWith('bytes_per_s')) return formatQuantity(value, 'B/s');
  if (name.endsWith('flops_per_s')) return formatQuantity(value, 'FLOP/s');
  if (/(_share|_mfu|_mbu)$/.test(name)) return formatQuantity(value, 'ratio');
  return formatNumber(value);
}

export function shownFiguresOf({ runs }: SweepResult): string[] {
  const has = (name: string) =>
    runs.some(({ figures }) => figures.some(({ values }) => typeof values[name] === 'number'));
  // The whole GPU's count and the run's own differ where others were on it, or a baseline was.
  const differs = runs.some(({ figures }) =>
    figures.some(({ values: { peak_gb: peak, total_measured_gb: own } }) => {
      return typeof peak === 'number' && typeof own === 'number' && Math.abs(peak - own) > 0.01 * peak;
    }),
  );
  const usual = shownFigures.filter((name) => has(name) && (name !== 'total_measured_gb' || differs));
  if (usual.length > 0) return usual;
  return [...new Set(runs.flatMap(({ figures }) => figures.flatMap(({ values }) => Object.keys(values))))]
    .filter(has)
    .slice(0, 6);
}

/** `7 measured, 1 failed, 2 not started` */
export function sweepCounts(runs: readonly SweepRun[]): string {
  const counts = new Map<SweepOutcome, number>();
  for (const { outcome } of runs) counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  return Object.entries(outcomeLabels)
    .flatMap(([outcome, words]) => {
      const count = counts.get(outcome as SweepOutcome);
      return count === undefined ? [] : [`${formatCount(count)} ${words}`];
    })
    .join(', ');
}

/** Of a parameter's value in a table: `none` where nothing was asked for. */
export const valueText = (value: string | number | null | undefined): string =>
  value === null || value === undefined ? noValue : String(value);

/** Parameters that a table needs: those that vary; all of them where none does. */
export const shownParameters = ({ varied, runs }: SweepResult): string[] =>
  varied.length > 0 ? varied : Object.keys(runs[0]?.parameters ?? {}).slice(0, 3);

/** `e.g. 34 s` of wall clock. */
export const secondsText = (seconds: number | null): string =>
  seconds === null
    ? noValue
    : seconds < 120
      ? `${formatNumber(seconds, 2)}${nbsp}s`
      : `${formatNumber(seconds / 60, 2)}${nbsp}min`;

/** What runs said of themselves, alike ones together: of one code the first text stands for all. */
export function doubtsOf(
  runs: readonly Pick<SweepRun, 'number' | 'issues'>[],
): { numbers: number[]; text: string }[] {
  const found = new Map<string, { numbers: Set<number>; texts: string[] }>();
  for (const { number, issues } of runs)
    for (const { code, text } of issues) {
      const one = found.get(code) ?? { numbers: new Set(), texts: [] };
      one.numbers.add(number);
      if (!one.texts.includes(text)) one.texts.push(text);
      found.set(code, one);
    }
  return [...found.values()].map(({ numbers, texts }) => ({
    numbers: [...numbers],
    text: texts[0]! + (texts.length > 1 ? ' (the others alike)' : ''),
  }));
}

/** Of a parameter, in a table: a model without its owner and folders, which leave no room for the rest. */
export function shownValue(name: string, value: string | number | null | undefined): string {
  if (name !== 'model_id' || typeof value !== 'string') return valueText(value);
  const parts = value.replace(/\/+$/, '').split('/');
  return (parts.at(-1) === 'config.json' ? parts.at(-2) : parts.at(-1)) || value;
}
