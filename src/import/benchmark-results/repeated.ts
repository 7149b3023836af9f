import { type ResultFile, warning } from './result-file.js';

/** Drops points that equal an earlier one in every figure: the same result was appended or joined twice. */
export function withoutRepeated(file: ResultFile): ResultFile {
  const seenFigures = new Set<string>();
  const points = file.points.filter(({ metrics, requests }) => {
    // Counts may be equal by chance; times are not, to their last digit.
    if (metrics.every(({ value }) => Number.isInteger(value))) return true;
    const figures = JSON.stringify([metrics, requests.length]);
    if (seenFigures.has(figures)) return false;
    seenFigures.add(figures);
    return true;
  });
  const count = file.points.length - points.length;
  if (count === 0) return file;
  const text = `${count} of ${file.points.length} results ${count === 1 ? 'equals' : 'equal'} an earlier one in every figure; duplicates were dropped.`;
  return { ...file, points, issues: [...file.issues, warning('results_repeated', text, count)] };
}

/** Labels of results, with a number where several are equal: "rate inf, result 2". */
export const distinctLabels = (labels: readonly string[]): string[] =>
  labels.map((label, index) =>
    labels.indexOf(label) === labels.lastIndexOf(label) ? label : `${label}, result ${index + 1}`,
  );
