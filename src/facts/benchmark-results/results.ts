import { isRecomputed, isRecomputedSql, type ResultMetric } from '../../model/metric-source.js';
import { document, type Document } from '../../model/document.js';
import {
  type BenchmarkMetric,
  type BenchmarkPoint,
  type BenchmarkResults,
  resultsVersion,
} from '../../model/documents/results.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { requireSubject } from '../artifact.js';

export interface MetricRow extends ResultMetric {
  capture_id: string;
  point: number;
  label: string;
}

interface RequestRow {
  capture_id: string;
  ok: number;
  failed: number;
}

/**
 * Imported results of other benchmark tools.
 * @throws E_USAGE if the session has none
 */
export async function analyzeResults(session: Session): Promise<Document<BenchmarkResults>> {
  const { manifest } = session;
  requireSubject(session, 'results');
  const database = await session.connect();
  try {
    const captures = await readCaptures(manifest.captures, database);
    mergeRuns(captures);
    const identity = {
      id: session.id,
      name: session.user.name,
      title: manifest.title,
      started_at: manifest.started_at,
    };
    return document('results', resultsVersion, { session: identity, captures }, session.issues);
  } finally {
    await database.close();
  }
}

type Capture = BenchmarkResults['captures'][number];

/** Captures with metrics, in the order given. */
async function readCaptures(
  captures: readonly Pick<Capture, 'capture_id' | 'tool'>[],
  database: SessionDatabase,
): Promise<Capture[]> {
  const rows = await database.query<MetricRow>(
    `SELECT capture_id, point, label, name, same_definition, statistic, value, unit, n, definition, source FROM metrics
     ORDER BY capture_id, point, name, ${isRecomputedSql}, statistic, source`,
  );
  const requests = await readRequestCounts(database);
  return captures
    .map(({ capture_id, tool }) => {
      const captureRows = rows.filter((row) => row.capture_id === capture_id);
      return { capture_id, tool, points: pointsOf(captureRows, requests.get(capture_id) ?? null) };
    })
    .filter(({ points }) => points.length > 0);
}

/** Captures that summarize the requests of another capture: the id of each, and of the capture with its requests. */
export async function readSummaries(
  captures: readonly Pick<Capture, 'capture_id' | 'tool'>[],
  database: SessionDatabase,
): Promise<Map<string, string>> {
  return new Map(
    summaries(await readCaptures(captures, database)).map(([summary, detailed]) => [
      summary.capture_id,
      detailed.capture_id,
    ]),
  );
}

function summaries(captures: readonly Capture[]): [summary: Capture, detailed: Capture][] {
  const pairs: [Capture, Capture][] = [];
  for (const detailed of captures.filter(({ points: [point] }) => point!.requests !== null)) {
    const summary = captures.find(
      (capture) =>
        capture !== detailed &&
        !pairs.some(([detailedCapture]) => detailedCapture === capture) &&
        isSummaryOf(capture, detailed),
    );
    if (summary) pairs.push([summary, detailed]);
  }
  return pairs;
}

/**
 * Merges a summary and the requests of one run, which a tool writes to two files, into one capture: the file's figures
 * with the recomputed ones.
 */
function mergeRuns(captures: Capture[]): void {
  for (const [summary, detailed] of summaries(captures)) {
    captures.splice(captures.indexOf(summary), 1);
    const { tool, points } = summary;
    const [point] = detailed.points as [BenchmarkPoint];
    const merged = points[0]!.metrics.map((metric) => ({
      ...metric,
      recomputed: point.metrics.find((figures) => figures.name === metric.name)?.recomputed ?? [],
    }));
    const rest = point.metrics.filter(({ name }) => !merged.some((metric) => metric.name === name));
    detailed.tool = tool;
    point.label = points[0]!.label;
    point.metrics = [...merged, ...rest].toSorted(byMetricOrder);
  }
}

/** Matches by tool and mean latency, which is equal to the last digit; the requests may not say at which load they were sent. */
function isSummaryOf(summary: Capture, detailed: Capture): boolean {
  const [[point, ...morePoints], [other]] = [summary.points, detailed.points] as [
    BenchmarkPoint[],
    BenchmarkPoint[],
  ];
  if (!point || !other || morePoints.length > 0 || point.requests !== null) return false;
  const a = meanLatency(point);
  const b = meanLatency(other);
  return summary.tool.name === detailed.tool.name && a !== null && b !== null && Math.abs(a - b) <= 1e-6 * a;
}

/** In the unit of its metric; null if the point has no end-to-end latency. */
function meanLatency({ metrics }: BenchmarkPoint): number | null {
  const metric = metrics.find(({ name, same_definition }) => name === 'e2e' && same_definition);
  const all = metric ? [...metric.file, ...metric.recomputed] : [];
  return all.find(({ statistic }) => statistic === 'mean')?.value ?? null;
}

async function readRequestCounts(database: SessionDatabase): Promise<Map<string, RequestRow>> {
  const rows = await database.query<RequestRow>(
    `SELECT capture_id, count_if(status = 'ok') AS ok, count_if(status NOT IN ('ok', 'incomplete')) AS failed FROM requests
     WHERE NOT coalesce(warmup, false) GROUP BY capture_id`,
  );
  return new Map(rows.map((row) => [row.capture_id, row]));
}

/** Requests are counted only if a file has one point, because request rows do not name their point. */
function pointsOf(rows: readonly MetricRow[], requests: RequestRow | null): BenchmarkPoint[] {
  const points = [...new Set(rows.map(({ point }) => point))].sort((a, b) => a - b);
  return points.map((point) => {
    const pointRows = rows.filter((row) => row.point === point);
    return {
      label: pointRows[0]!.label,
      requests: requests && points.length === 1 ? { ok: requests.ok, failed: requests.failed } : null,
      metrics: metricsOf(pointRows),
    };
  });
}

function metricsOf(rows: readonly MetricRow[]): BenchmarkMetric[] {
  const names = [...new Set(rows.map(({ name }) => name))];
  const metrics = names.map((name): BenchmarkMetric => {
    const metricRows = rows.filter((row) => row.name === name);
    const statistics = (recomputed: boolean) =>
      metricRows
        .filter(({ source }) => isRecomputed(source) === recomputed)
        .map(({ statistic, value, n, source }) => ({ statistic, value, n, source }));
    const [{ unit, definition, same_definition }] = metricRows as [MetricRow];
    return {
      name,
      unit,
      definition,
      same_definition,
      file: statistics(false),
      recomputed: statistics(true),
    };
  });
  return metrics.toSorted(byMetricOrder);
}

const byMetricOrder = (a: BenchmarkMetric, b: BenchmarkMetric): number =>
  metricRank(a) - metricRank(b) || a.name.localeCompare(b.name, 'en');

const metricOrder = [
  'ttft',
  'tpot',
  'itl',
  'e2e',
  'request_throughput',
  'output_throughput',
  'total_throughput',
];

/** inferscope's metrics first, in request order. */
export function metricRank({ name, same_definition }: { name: string; same_definition: boolean }): number {
  const known = metricOrder.indexOf(name);
  if (known >= 0) return known;
  return same_definition ? metricOrder.length : metricOrder.length + 1;
}
