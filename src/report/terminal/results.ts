import type { Document } from '../../model/document.js';
import type { ExplainResult } from '../../model/documents/explain.js';
import type { BenchmarkMetric, BenchmarkPoint, BenchmarkResults } from '../../model/documents/results.js';
import { formatCount, formatQuantity, nbsp, noValue } from '../format.js';
import { collapsed } from '../notices.js';
import { colour } from './colour.js';
import { explainBrief } from './explain.js';
import { textTable } from './table.js';
import { hanging, inert, withPlainSpaces } from './text.js';

const right = (head: string) => ({ head, align: 'right' as const });

/**
 * Imported benchmark results: sentences and the waterfall of a request, then a table a load point, ours apart from what is defined otherwise, whose definitions are
 * told once. At most 80 columns; nothing is lost without colour.
 */
export function resultsSummary(
  { data, issues, tool_version }: Document<BenchmarkResults>,
  columns: number,
  explain: Document<ExplainResult> | null = null,
): string {
  const width = Math.min(80, columns);
  const lines = [
    ...hanging('', `inferscope${nbsp}${tool_version} · results · ${inert(data.session.title)}`, width),
    ...(explain ? ['', explainBrief(explain, width)] : []),
  ];
  const told = new Map<string, string>();
  for (const { tool, points } of data.captures) {
    for (const point of points) {
      const counts = point.requests
        ? ` · ${formatCount(point.requests.ok)} requests${point.requests.failed > 0 ? `, ${formatCount(point.requests.failed)} failed` : ''}`
        : '';
      lines.push('', `  ${colour.bold(`${inert(tool.name)} · ${inert(point.label)}`)}${counts}`);
      lines.push(pointTable(point, width));
      for (const { name, definition, defined_as_ours } of point.metrics) {
        if (!defined_as_ours && definition !== '') told.set(name, definition);
      }
    }
  }
  if (told.size > 0) {
    lines.push('', `  ${colour.bold('Defined otherwise than ours: not to be held against them')}`);
    for (const [name, definition] of told)
      lines.push(...hanging(`  ${inert(name)}  `, inert(definition), width));
  }
  if (data.captures.some(({ points }) => points.some(isRecomputed))) {
    lines.push(
      '',
      ...hanging('  ', '* recomputed from the requests of the file; the rest is as the tool wrote it', width),
    );
  }
  if (data.captures.some(({ points }) => points.some(isStepped))) {
    lines.push(...hanging('  ', '† a step of the distribution, not interpolated', width));
  }
  const said = collapsed(issues).flatMap(({ severity, text }) =>
    hanging(
      severity === 'error'
        ? `  ${colour.red('error:')} `
        : `  ${severity === 'warning' ? colour.yellow('warning:') : 'note:'} `,
      inert(text),
      width,
    ),
  );
  if (said.length > 0) lines.push('', ...said);
  return withPlainSpaces(lines.join('\n'));
}

const isStepped = ({ metrics }: BenchmarkPoint): boolean =>
  metrics.some(({ file }) => file.some(({ statistic }) => statistic.endsWith('_step')));

const isRecomputed = ({ metrics }: BenchmarkPoint): boolean =>
  metrics.some(({ recomputed }) => recomputed.length > 0);

function pointTable({ metrics }: BenchmarkPoint, width: number): string {
  const rows = metrics.map((metric) => {
    const cell = (...names: string[]) => shown(metric, names);
    return [
      inert(metric.name),
      cell('mean', 'value', 'max'),
      cell('median', 'median_step'),
      cell('p99', 'p99_step'),
    ];
  });
  return textTable([{ head: 'metric', flexible: true }, right('mean'), right('median'), right('p99')], rows, {
    width,
  });
}

/** Ours where there is one, else the file's; a percentile that was not interpolated, or a maximum, says so. */
function shown({ file, recomputed, unit }: BenchmarkMetric, names: readonly string[]): string {
  for (const [list, mark] of [
    [recomputed, ' *'],
    [file, ''],
  ] as const) {
    const found = names.map((name) => list.find(({ statistic }) => statistic === name)).find((one) => one);
    if (!found) continue;
    const kind = found.statistic.endsWith('_step') ? ' †' : found.statistic === 'max' ? ' (max)' : '';
    const counted = (unit === 'requests' || unit === 'tokens') && Number.isInteger(found.value);
    const value = counted ? `${formatCount(found.value)}${nbsp}${unit}` : formatQuantity(found.value, unit);
    return `${value}${kind}${mark}`;
  }
  return noValue;
}
