import type { Issue } from '../../model/document.js';
import { type ResultFile, type ResultPoint, warning } from './result-file.js';
import { formatNs, plural } from '../../vocabulary/format.js';

/** Times, counts and rates are never negative. Others (temperatures, differences) may be. */
const unitsFromZero = new Set(['ms', 's', 'req/s', 'tok/s', 'tok/s/user', 'tok/s/GPU', 'tokens', 'requests']);
/** Times of requests, ns, and their counts. */
const rowsFromZero = [
  'sent_ns',
  'first_token_ns',
  'end_ns',
  'ttft_ns',
  'tpot_ns',
  'input_tokens',
  'output_tokens',
  'cached_tokens',
] as const;
/** 2^53: larger counts are not exact, and no time in ms and no rate is larger. */
const maxFigure = Number.MAX_SAFE_INTEGER;
/** For rows, with times that may be Unix times in ns: 300 years. */
const maxCell = 1e19;
const maxExamples = 3;

const isPossible = (value: number, fromZero: boolean, max: number) =>
  Math.abs(value) <= max && (value >= 0 || !fromZero);

/** Drops numbers that no benchmark can measure (negative times, 1e308), and counts them in a warning. */
export function withoutImpossible(file: ResultFile): ResultFile {
  const dropped: string[] = [];
  const points = file.points.map((point): ResultPoint => {
    const metrics = point.metrics.filter(({ name, statistic, value, unit }) => {
      const isKept = isPossible(value, unitsFromZero.has(unit), maxFigure);
      if (!isKept) dropped.push(`${name} ${statistic} = ${value}`);
      return isKept;
    });
    const requests = point.requests.map((row) => {
      const wrong = rowsFromZero.filter((name) => !isPossible(row[name] ?? 0, true, maxCell));
      for (const name of wrong) dropped.push(`${name} = ${row[name]} of a request`);
      return wrong.length === 0 ? row : { ...row, ...Object.fromEntries(wrong.map((name) => [name, null])) };
    });
    const iterations = point.iterations.filter(({ start_ns: start, end_ns: end }) => {
      const isKept = isPossible((end ?? 0) - (start ?? 0), true, maxCell);
      if (!isKept) dropped.push(`a repeat that took ${formatNs((end ?? 0) - (start ?? 0))}`);
      return isKept;
    });
    return { ...point, metrics, requests, iterations };
  });
  return dropped.length === 0
    ? file
    : { ...file, points, issues: [...file.issues, impossibleIssue(dropped)] };
}

function impossibleIssue(dropped: readonly string[]): Issue {
  const examples = dropped.slice(0, maxExamples).join(', ');
  const more = dropped.length > maxExamples ? ', …' : '';
  return warning(
    'impossible_values',
    `${plural(dropped.length, 'number')} dropped as negative or implausibly large: ${examples}${more}.`,
    dropped.length,
  );
}
