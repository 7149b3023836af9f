import type { Issue } from '../../model/document.js';
import { type ResultFile, type ResultPoint, warning } from './result-file.js';
import { formatNs } from '../../vocabulary/format.js';

/** Times, counts and rates are never negative. Others (temperatures, differences) may be. */
const unitsFromZero = new Set(['ms', 's', 'req/s', 'tok/s', 'tok/s/user', 'tok/s/GPU', 'tokens', 'requests']);
/** Times of requests and steps, ns, and counts. */
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
const examples = 3;

const possible = (value: number, fromZero: boolean, most: number) =>
  Math.abs(value) <= most && (value >= 0 || !fromZero);

/** Drops numbers that no benchmark can measure (negative times, 1e308), and counts them in a warning. */
export function withoutImpossible(file: ResultFile): ResultFile {
  const dropped: string[] = [];
  const points = file.points.map((point): ResultPoint => {
    const metrics = point.metrics.filter(({ name, statistic, value, unit }) => {
      const checked = possible(value, unitsFromZero.has(unit), maxFigure);
      if (!checked) dropped.push(`${name} ${statistic} = ${value}`);
      return checked;
    });
    const requests = point.requests.map((row) => {
      const wrong = rowsFromZero.filter((name) => !possible(row[name] ?? 0, true, maxCell));
      for (const name of wrong) dropped.push(`${name} = ${row[name]} of a request`);
      return wrong.length === 0 ? row : { ...row, ...Object.fromEntries(wrong.map((name) => [name, null])) };
    });
    const iterations = point.iterations.filter(({ start_ns: start, end_ns: end }) => {
      const checked = possible((end ?? 0) - (start ?? 0), true, maxCell);
      if (!checked) dropped.push(`a repeat that took ${formatNs((end ?? 0) - (start ?? 0))}`);
      return checked;
    });
    return { ...point, metrics, requests, iterations };
  });
  return dropped.length === 0 ? file : { ...file, points, issues: [...file.issues, impossible(dropped)] };
}

function impossible(dropped: readonly string[]): Issue {
  const shown = dropped.slice(0, examples).join(', ');
  const more = dropped.length > examples ? ', …' : '';
  return warning(
    'impossible_values',
    `${dropped.length} number${dropped.length === 1 ? ' is' : 's are'} negative or implausibly large and ${dropped.length === 1 ? 'was' : 'were'} dropped: ${shown}${more}.`,
    dropped.length,
  );
}
