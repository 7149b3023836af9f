import type { SweepResult, SweepRun } from '../model/documents/sweep.js';
import { csvLines } from './csv.js';

/**
 * One row per run, or per point if a run measured several: varied parameters, outcome, main figures (units in the names), session and
 * files. An empty cell is a missing figure; the run's document has the reason.
 */
export function sweepCsv({ runs }: Pick<SweepResult, 'runs'>): string {
  const parameters = names(runs.map((run) => run.parameters));
  const figures = names(runs.flatMap((run) => run.figures.map(({ values }) => values)));
  const labeled = runs.some((run) => run.figures.some(({ label }) => label !== null));
  const head = [
    'run',
    ...parameters,
    ...(labeled ? ['point'] : []),
    'outcome',
    'attempts',
    'started_at',
    'duration_s',
    ...figures,
    'session_id',
    'output',
    'error_code',
    'error',
  ];
  const lines = runs.flatMap((run) =>
    (run.figures.length > 0 ? run.figures : [{ label: null, values: {} }]).map(({ label, values }) => [
      run.number,
      ...parameters.map((name) => run.parameters[name]),
      ...(labeled ? [label] : []),
      run.outcome,
      run.attempts,
      run.started_at,
      run.duration_s,
      ...figures.map((name) => (values as Record<string, number | null>)[name]),
      run.session_id,
      run.output,
      run.failure?.code,
      failureWords(run),
    ]),
  );
  return csvLines([head, ...lines]);
}

const failureWords = ({ failure }: SweepRun): string | null =>
  failure && [failure.what, failure.why].filter(Boolean).join(': ');

const names = (records: readonly Record<string, unknown>[]): string[] => [
  ...new Set(records.flatMap((record) => Object.keys(record))),
];
