import type { CrossValidation } from '../../model/documents/predict.js';
import { median } from '../../model/statistics.js';
import { affineFit } from './interpolate.js';
import { axesOf, elementwiseForm, type MeasuredKernel } from './kernel-table.js';
import { kernelTime, movePoints, type Roof } from './kernel-time.js';

/** More cases are thinned evenly: each costs a pass over the table. */
const maxCases = 400;

/**
 * Leave-one-out error of the table: each case predicted from all others, as |predicted / measured − 1| by kernel.
 * `elementwise` are cases that only move bytes, against the line through the others.
 */
export function crossValidate(table: readonly MeasuredKernel[], roof: Roof): CrossValidation[] {
  const byKernel = new Map<string, { error: number; case: string }[]>();
  const add = (kernel: string, error: number, name: string) =>
    byKernel.set(kernel, [...(byKernel.get(kernel) ?? []), { error, case: name }]);
  const step = Math.max(1, Math.ceil(table.length / maxCases));
  table.forEach((kernel, index) => {
    if (index % step !== 0) return;
    const others = table.filter((_, position) => position !== index);
    if (
      kernel.kernel in axesOf &&
      others.some((other) => other.kernel === kernel.kernel && other.dtype === kernel.dtype)
    ) {
      const predicted = kernelTime(others, kernel, roof);
      if (predicted) add(kernel.kernel, Math.abs(predicted.ns / kernel.ns - 1), kernel.case);
    }
    const form = elementwiseForm(kernel);
    const line = form && affineFit(movePoints(others, kernel.dtype));
    if (form && line) {
      const predicted = line.offset + (line.slope * form.bytes) / form.kernels;
      add('elementwise', Math.abs(predicted / (kernel.ns / form.kernels) - 1), kernel.case);
    }
  });
  return [...byKernel].map(([kernel, errors]) => {
    const sorted = errors.toSorted((a, b) => a.error - b.error);
    const worst = sorted.at(-1)!;
    return {
      kernel,
      cases: sorted.length,
      median_error: median(sorted.map(({ error }) => error)),
      worst_error: worst.error,
      worst_case: worst.case,
    };
  });
}
