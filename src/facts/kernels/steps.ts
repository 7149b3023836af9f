import type { KernelPlan, KernelResult, KernelStep } from '../../model/documents/kernels.js';
import { figure, missing, type Figure } from '../../model/figure.js';

type PlannedStep = NonNullable<KernelPlan['model']>['steps'][number];

/** Σ count × median over a step's operations, together with the sum of their roofline limits. */
export function stepOf(step: PlannedStep, results: ReadonlyMap<string, KernelResult>): KernelStep {
  const ops = step.ops.map((op) => {
    const result = op.case === null ? undefined : results.get(op.case);
    const median = result?.outcome === 'measured' ? result.median_ns : null;
    const roof = result?.roof_ns.value ?? null;
    return {
      ...op,
      reason: op.reason ?? (median === null ? notMeasured(result) : null),
      total_ns: median === null ? null : op.count * median,
      roof_ns: roof === null ? null : op.count * roof,
    };
  });
  const measured = ops.filter(({ total_ns }) => total_ns !== null);
  const count = (list: typeof ops) => list.reduce((sum, op) => sum + op.count, 0);
  return {
    ...step,
    ops,
    measured_ns: sumOf(
      measured.map(({ total_ns }) => total_ns),
      'Σ count × median of the case',
    ),
    roof_ns: sumOf(
      measured.map(({ roof_ns }) => roof_ns),
      'Σ count × roof of the measured operations',
    ),
    measured_ops: count(measured),
    missing_ops: count(ops) - count(measured),
  };
}

function notMeasured(result: KernelResult | undefined): string {
  if (!result) return 'its case was not reached';
  return result.text === null
    ? result.outcome.replaceAll('_', ' ')
    : `${result.outcome.replaceAll('_', ' ')}: ${result.text}`;
}

function sumOf(values: readonly (number | null)[], source: string): Figure {
  if (values.length === 0) return missing('not_measured', 'no operation of the step was measured');
  if (values.includes(null)) return missing('no_roof', 'a roof of its operations is not known');
  return figure(
    values.reduce<number>((sum, value) => sum + value!, 0),
    'ns',
    source,
  );
}
