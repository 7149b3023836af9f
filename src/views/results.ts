import type { Document } from '../model/document.js';
import type { BenchmarkMetric, BenchmarkPoint, BenchmarkResults } from '../model/documents/results.js';
import {
  ourStatistic,
  requestCounts,
  type Statistic,
  type StatisticId,
  statisticIn,
} from '../model/result-statistics.js';
import type { Block, Column, Row, Section, Table, Text, View } from './block.js';
import { resultLatencySection } from './results-latency.js';
import { definitionSection, shortList } from './results-definitions.js';
import { statistics } from './results-values.js';
import { plural } from '../vocabulary/format.js';

type Capture = BenchmarkResults['captures'][number];
const marks = {
  recomputed: {
    mark: '*',
    meaning:
      'our definition, recomputed from the requests in the file; other rows are as the tool wrote them',
  },
  step: { mark: '†', meaning: 'nearest rank, not interpolated' },
  population: { mark: '‡', meaning: 'divided by n, not n − 1' },
} as const;

/** Imported benchmark results: a table per load point; our metrics separate from the tool's own. */
export function resultsView(document: Document<BenchmarkResults>): View {
  const { session, captures } = document.data;
  const metrics = captures.flatMap(({ points }) => points.flatMap((point) => point.metrics));
  const foreign = metrics.filter((metric) => !metric.same_definition);
  const foreignNames = [...new Set(foreign.map(({ name }) => name))];
  // A log has only its own metrics.
  const comparable =
    foreignNames.length < new Set(metrics.map(({ name }) => name)).size ||
    captures.some(({ points }) => points.some(({ requests }) => requests !== null));
  const latency = resultLatencySection(pointsOf(captures));
  return {
    command: 'import',
    title: session.title,
    document,
    session,
    lead: [
      {
        type: 'facts',
        level: 3,
        items: [
          { name: 'Contains', text: captures.map(contentText).join('; ') },
          {
            name: 'Comparable',
            text:
              foreignNames.length === 0
                ? 'All metrics use our definitions.'
                : `Defined differently, not comparable: ${shortList(foreignNames)}.`,
          },
        ],
      },
      { type: 'issues', issues: document.issues },
    ],
    sections: [
      {
        id: 'loads',
        title: comparable
          ? 'Load points'
          : `Metrics of ${[...new Set(captures.map(({ tool }) => tool.name))].join(' and ')}`,
        blocks: comparable
          ? [loadTable(captures), ...recomputedNote(metrics)]
          : captures.flatMap((capture): Block[] => [
              ...(captures.length > 1
                ? [{ type: 'heading', text: captureTitle(capture, captures) } satisfies Block]
                : []),
              toolTable(capture),
            ]),
      },
      ...(latency === null ? [] : [latency]),
      // The tables of a tool's own metrics have everything.
      ...(comparable ? captures.map(captureSection) : []),
      definitionSection(captures, foreignNames.length > 0),
    ],
  };
}

const toolName = ({ tool }: Capture): string => `${tool.name} ${tool.version ?? ''}`.trim();
/** The points of a log are an engine and its ranks, not loads. */
function contentText(capture: Capture): string {
  const metrics = capture.points.flatMap((point) => point.metrics);
  const content = metrics.some((metric) => metric.same_definition)
    ? plural(capture.points.length, 'load point')
    : plural(new Set(metrics.map(({ name }) => name)).size, 'metric');
  return `${content} of ${toolName(capture)}`;
}

const captureTitle = (capture: Capture, all: readonly Capture[]): string =>
  all.length > 1 ? `${toolName(capture)}, ${capture.capture_id}` : toolName(capture);

const captureSection = (capture: Capture, index: number, all: readonly Capture[]): Section => ({
  id: `capture-${index + 1}`,
  level: 2,
  title: captureTitle(capture, all),
  blocks: capture.points.flatMap((point, position, points): Block[] => [
    { type: 'heading', text: pointTitle(point) },
    pointTable(
      point,
      // Each meaning once, after the last table that has the mark.
      Object.values(marks).filter(
        ({ mark }) => points.findLastIndex((other) => hasMark(other, mark)) === position,
      ),
    ),
  ]),
});

const hasMark = ({ metrics }: BenchmarkPoint, mark: string): boolean =>
  metrics.some(
    ({ file, recomputed }) =>
      (mark === marks.recomputed.mark && recomputed.length > 0) ||
      [...file, ...recomputed].some(({ statistic }) => markOf(statistic) === mark),
  );

/** Metrics for comparing loads: only ours, each with its most common statistic. */
const loadColumns: readonly { metric: string; statistic: StatisticId; head: string; drop?: number }[] = [
  { metric: 'request_throughput', statistic: 'mean', head: 'req/s', drop: 4 },
  { metric: 'output_throughput', statistic: 'mean', head: 'tok/s' },
  { metric: 'total_throughput', statistic: 'mean', head: 'tok/s in + out' },
  { metric: 'ttft', statistic: 'p50', head: 'TTFT median', drop: 2 },
  { metric: 'ttft', statistic: 'p99', head: 'TTFT p99' },
  { metric: 'tpot', statistic: 'p50', head: 'TPOT median', drop: 3 },
  { metric: 'tpot', statistic: 'p99', head: 'TPOT p99', drop: 5 },
  { metric: 'e2e', statistic: 'p50', head: 'e2e median', drop: 1 },
  { metric: 'e2e', statistic: 'p99', head: 'e2e p99', drop: 0 },
];

/** All load points; with several files each names its tool. */
const pointsOf = (captures: readonly Capture[]) =>
  captures.flatMap((capture) =>
    capture.points.map((point) => ({
      label: captures.length > 1 ? `${toolName(capture)}: ${point.label}` : point.label,
      point,
    })),
  );

function loadTable(captures: readonly Capture[]): Block {
  const points = pointsOf(captures);
  const all = loadColumns.map((column) => ({
    ...column,
    cells: points.map(({ point }) => loadCell(point, column)),
  }));
  const known = all.filter(({ cells }) => cells.some((cell) => !isMissing(cell)));
  // Some tools count prompt and output tokens together.
  const columns = known.some(({ metric }) => metric === 'output_throughput')
    ? known.filter(({ metric }) => metric !== 'total_throughput')
    : known;
  return {
    type: 'table',
    title: 'Load points, with our definitions',
    reasons: true,
    columns: [
      { id: 'load', head: 'load', wraps: true },
      { id: 'requests', head: 'requests', numeric: true, drop: 6 },
      ...columns.map(({ metric, statistic, head, drop }): Column => ({
        id: `${metric}_${statistic}`,
        head,
        numeric: true,
        ...(drop === undefined ? {} : { drop }),
      })),
    ],
    rows: points.map(({ label, point }, row) => ({
      cells: [label, requestCount(point), ...columns.map(({ cells }) => cells[row]!)],
    })),
    marks: Object.values(marks),
    brief: 8,
  };
}

const isMissing = (text: Text): boolean => typeof text === 'object' && 'missing' in text;

function loadCell(point: BenchmarkPoint, column: (typeof loadColumns)[number]): Text {
  const statistic = ourStatistic(point, column.metric, column.statistic);
  const unit = point.metrics.find(({ name, same_definition: ours }) => ours && name === column.metric)?.unit;
  // The head of a rate is its unit.
  return statisticText(statistic, unit === undefined || unit === column.head ? '' : unit);
}

function requestCount(point: BenchmarkPoint): Text {
  const requests = requestCounts(point);
  if (requests === null) return { missing: 'the file has no value per load' };
  const { ok, failed } = requests;
  return failed ? [{ count: ok }, ' + ', { count: failed, unit: 'failed' }] : { count: ok };
}

const isSingleValue = ({ statistic }: Statistic): boolean => statistic === 'value';

/**
 * The tool's own metrics: one row per metric and one column per point (an engine or one of its ranks). If a metric has several statistics,
 * no two points share a metric, or points outnumber metrics, one row per point and metric.
 */
function toolTable({ points, tool }: Capture): Block {
  const names = [...new Set(points.flatMap(({ metrics }) => metrics.map(({ name }) => name)))];
  const isShared = (name: string) =>
    points.filter(({ metrics }) => metrics.some((metric) => metric.name === name)).length > 1;
  const hasSingleValues = points.every(({ metrics }) =>
    metrics.every(({ file }) => file.every(isSingleValue)),
  );
  if (!hasSingleValues || points.length > names.length || (points.length > 1 && !names.some(isShared)))
    return toolList(points, tool);
  const valueOf = ({ metrics }: BenchmarkPoint, name: string): Text => {
    const metric = metrics.find((candidate) => candidate.name === name);
    return metric ? cell(metric.file, 'mean', metric.unit) : { missing: 'the file has no value here' };
  };
  return {
    type: 'table',
    title: `Metrics of ${tool.name}`,
    reasons: true,
    columns: [
      { id: 'metric', head: 'metric', wraps: true },
      ...points.map(({ label }, i): Column => ({
        id: label,
        head: points.length === 1 ? 'value' : label,
        numeric: true,
        drop: points.length - i,
      })),
    ],
    rows: names.map((name) => ({ cells: [name, ...points.map((point) => valueOf(point, name))] })),
    brief: 12,
  };
}

function toolList(points: readonly BenchmarkPoint[], tool: Capture['tool']): Block {
  const all = points.flatMap(({ metrics }) => metrics.flatMap(({ file }) => file));
  const columns = statistics.filter(({ id }) => statisticIn(all, id) !== null);
  const isSampled = all.some((value) => value.n !== null && !isSingleValue(value));
  return {
    type: 'table',
    title: `Metrics of ${tool.name}`,
    columns: [
      { id: 'point', head: 'label' },
      { id: 'metric', head: 'metric', wraps: true },
      // Some metrics have a maximum and no mean.
      ...columns.map(({ id, head, detail }, i): Column => ({
        id,
        head: all.every(isSingleValue) ? 'value' : head,
        numeric: true,
        ...(id === 'mean' || id === 'max' ? {} : { drop: i }),
        ...(detail ? { detail } : {}),
      })),
      ...(isSampled ? [{ id: 'n', head: 'n', numeric: true, drop: columns.length }] : []),
    ],
    rows: points.flatMap(({ label, metrics }) =>
      metrics.map(({ name, file, unit }) => ({
        cells: [
          label,
          name,
          ...columns.map(({ id }) => cell(file, id, unit)),
          ...(isSampled ? [sampleCount(file)] : []),
        ],
      })),
    ),
    reasons: true,
    marks: [marks.step, marks.population],
    brief: 14,
  };
}

const latencyNames = new Set(['ttft', 'tpot', 'e2e']);

const recomputedNote = (metrics: readonly BenchmarkMetric[]): Block[] =>
  metrics.some(({ name, recomputed }) => latencyNames.has(name) && recomputed.length > 0)
    ? [{ type: 'text', text: 'Latencies are recomputed from the requests in the file.' }]
    : [];

function pointTitle(point: BenchmarkPoint): Text {
  const requests = requestCounts(point);
  if (requests === null) return point.label;
  return [
    point.label,
    ' · ',
    { count: requests.ok, unit: 'requests' },
    ...(requests.failed ? [', ', { count: requests.failed, unit: 'failed' }] : []),
  ];
}

/** One row for the tool's values, and one for values recomputed from its requests, which a summary prefers. */
function pointTable({ metrics }: BenchmarkPoint, meanings: Table['marks'] = []): Block {
  const all = metrics.flatMap(({ file, recomputed }) => [...file, ...recomputed]);
  const columns = statistics.filter(({ id }) => statisticIn(all, id) !== null);
  const row = (metric: BenchmarkMetric, list: readonly Statistic[], recomputed: boolean): Row => ({
    level: metric.recomputed.length > 0 && !recomputed ? 2 : 1,
    cells: [
      recomputed ? `${metric.name} ${marks.recomputed.mark}` : metric.name,
      metric.same_definition ? 'same definition' : { text: 'not comparable', tone: 'fault' },
      ...columns.map(({ id }) => cell(list, id, metric.unit)),
      sampleCount(list),
    ],
  });
  return {
    type: 'table',
    title: 'Metrics',
    reasons: true,
    columns: [
      { id: 'metric', head: 'metric', wraps: true },
      { id: 'defined', head: 'defined', drop: 2 },
      ...columns.map(({ id, head, drop, detail }): Column => ({
        id,
        head,
        numeric: true,
        ...(drop === undefined ? {} : { drop }),
        ...(detail ? { detail } : {}),
      })),
      { id: 'n', head: 'n', numeric: true, drop: 3 },
    ],
    rows: metrics.flatMap((metric) => [
      ...(metric.file.length > 0 ? [row(metric, metric.file, false)] : []),
      ...(metric.recomputed.length > 0 ? [row(metric, metric.recomputed, true)] : []),
    ]),
    marks: meanings,
  };
}

function sampleCount(list: readonly Statistic[]): Text {
  const ns = list.flatMap(({ n }) => (n === null ? [] : [n]));
  return ns.length > 0 ? { count: Math.max(...ns) } : { missing: 'the file has no number of samples' };
}

const cell = (list: readonly Statistic[], id: StatisticId, unit: string): Text =>
  statisticText(statisticIn(list, id), unit);

function statisticText(statistic: Statistic | null, unit: string): Text {
  if (!statistic) return { missing: 'not in the file' };
  const isCount = (unit === 'requests' || unit === 'tokens') && Number.isInteger(statistic.value);
  const value = isCount ? { count: statistic.value, unit } : { n: statistic.value, unit };
  const mark = markOf(statistic.statistic);
  return mark === null ? value : [value, ` ${mark}`];
}

function markOf(statistic: string): string | null {
  if (statistic.endsWith('_step')) return marks.step.mark;
  return statistic === 'sd_population' ? marks.population.mark : null;
}
