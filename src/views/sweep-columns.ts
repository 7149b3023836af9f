import type { SweepResult, SweepRun, SweepValue } from '../model/documents/sweep.js';
import { figureQuantity, runOutcomeLabels } from '../vocabulary/sweep.js';
import type { Value } from './block.js';

/** Figures in the summary tables, if the runs have them; the CSV has all. */
const shownFigures = [
  'peak_gb',
  'total_measured_gb',
  'total_gb',
  'model_weights_gb',
  'kv_cache_gb',
  'largest_batch_size',
  'largest_context_tokens',
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
  'launched_ms',
  'roofline_ms',
  'wall_ms',
  'idle_share',
];

export function shownFiguresOf({ runs }: SweepResult): string[] {
  const has = (name: string) =>
    runs.some(({ figures }) => figures.some(({ values }) => typeof values[name] === 'number'));
  // The GPU's total and the run's own total differ if there were other processes or a baseline.
  const differs = runs.some(({ figures }) =>
    figures.some(({ values: { peak_gb: peak, total_measured_gb: total } }) => {
      return typeof peak === 'number' && typeof total === 'number' && Math.abs(peak - total) > 0.01 * peak;
    }),
  );
  const usual = shownFigures.filter((name) => has(name) && (name !== 'total_measured_gb' || differs));
  if (usual.length > 0) return usual;
  return [...new Set(runs.flatMap(({ figures }) => figures.flatMap(({ values }) => Object.keys(values))))]
    .filter(has)
    .slice(0, 6);
}

/** Why a run has no value: how it ended if it was not measured. */
export const whyNoFigure = ({ outcome }: SweepRun): string =>
  outcome === 'measured' ? 'not recorded' : `not measured (${runOutcomeLabels[outcome]})`;

export function figureValue(name: string, value: number | null | undefined, run: SweepRun): Value {
  if (value === null || value === undefined) return { missing: whyNoFigure(run) };
  return countFigures.has(name) ? { count: value } : figureQuantity(name, value);
}

const countFigures: ReadonlySet<string> = new Set(['largest_batch_size', 'largest_context_tokens']);

/** Parameters of the runs, those that vary first. */
export const parametersOf = ({ varied, runs }: SweepResult): string[] => {
  const values = runs.flatMap(({ parameters }) =>
    Object.keys(parameters).filter((name) => parameters[name] !== null),
  );
  return [...new Set([...varied, ...values])];
};

/** A model name without owner and folders, which would leave no room for other columns. */
export function parameterValue(name: string, value: SweepValue | undefined): Value | string {
  if (value === null || value === undefined) return { missing: 'not set' };
  if (name !== 'model_id' || typeof value !== 'string') return String(value);
  const parts = value.replace(/\/+$/, '').split('/');
  return (parts.at(-1) === 'config.json' ? parts.at(-2) : parts.at(-1)) || value;
}

/** Wall-clock time of a run. */
export const seconds = (value: number): Value =>
  value < 120 ? { n: value, unit: 's', digits: 2 } : { n: value / 60, unit: 'min', digits: 2 };
