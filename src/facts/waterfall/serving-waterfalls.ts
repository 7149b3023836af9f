import { isRecomputedSql } from '../../model/metric-source.js';
import type { Load } from '../../model/documents/serving.js';
import type { StageWaterfall } from '../../model/documents/explain.js';
import { missing } from '../../model/figure.js';
import type { Workload } from '../../model/manifest.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { loadLevel } from '../serving/answers.js';
import { readLoadPlan } from '../serving/serving.js';
import { literal } from '../trace/scope.js';
import { requestStage, type RequestTimes } from './request-stage.js';
import { serverProfile, type ServerTimes } from './serving-words.js';
import { formatNumber } from '../../vocabulary/format.js';
import { loadLabel } from '../../vocabulary/loads.js';

/**
 * Waterfalls of a load test: a mean request of each load level, from its due time (closed loop: send time) to its last
 * token, from the metrics of client and server. Failed and warm-up requests are excluded.
 */
export async function servingWaterfalls(
  session: Session,
  database: SessionDatabase,
): Promise<StageWaterfall[]> {
  const { points } = await readLoadPlan(session);
  const stages: StageWaterfall[] = [];
  // A sweep measures the highest loads before those between.
  for (const { execution_id, load } of points.toSorted((a, b) => loadLevel(a) - loadLevel(b))) {
    const stage = await loadWaterfall(database, execution_id, load, session.manifest.workload);
    if (stage) stages.push(stage);
  }
  return stages;
}

/** The waterfall of one load level; null if no request was answered. */
export async function loadWaterfall(
  database: SessionDatabase,
  executionId: string,
  load: Load,
  workload: Workload | null,
): Promise<StageWaterfall | null> {
  const openLoop = load.kind !== 'closed';
  const times = await requestTimes(database, executionId, openLoop);
  if (times.length === 0) return null;
  return requestStage(times, await serverTimes(database, executionId, workload), {
    execution_id: executionId,
    point: loadLabel(load),
    openLoop,
    where: answeredSql(executionId),
    roofline: missing('remote', 'a server does not report its hardware and batches'),
  });
}

/** Measured requests: answered, with a first and a last token. */
const answeredSql = (executionId: string): string =>
  `execution_id = ${literal(executionId)} AND status = 'ok' AND NOT coalesce(warmup, false)
   AND sent_ns IS NOT NULL AND first_token_ns IS NOT NULL AND end_ns IS NOT NULL`;

async function requestTimes(
  database: SessionDatabase,
  executionId: string,
  openLoop: boolean,
): Promise<RequestTimes[]> {
  return database.query<RequestTimes>(
    `SELECT row_number() OVER (ORDER BY sent_ns) - 1 AS nth, ${openLoop ? 'greatest(0, sent_ns - scheduled_ns)' : '0'} / 1e6 AS lag_ms,
            (first_byte_ns - sent_ns) / 1e6 AS first_byte_ms, (first_token_ns - sent_ns) / 1e6 AS ttft_ms, (end_ns - first_token_ns) / 1e6 AS decode_ms
     FROM requests WHERE ${answeredSql(executionId)} ORDER BY sent_ns`,
  );
}

/** Minimum samples of a gauge for a meaningful mean. */
const minSamples = 4;

/** Server metrics of a mean request during the load; null if not reported. */
async function serverTimes(
  database: SessionDatabase,
  executionId: string,
  workload: Workload | null,
): Promise<ServerTimes> {
  const rows = await database.query<{ metric: string; mean: number; n: number }>(
    `SELECT metric, avg(value) AS mean, count(*) AS n FROM telemetry
     WHERE execution_id = $1 AND scope = 'server' GROUP BY metric`,
    [executionId],
  );
  const metricRow = (metric: string) => rows.find((row) => row.metric === metric);
  const histogramMeans = new Map<string, HistogramMean | null>();
  for (const name of ['queue', 'prefill', 'e2e'])
    histogramMeans.set(name, await readHistogramMean(database, executionId, name));
  const histogram = (name: string) => histogramMeans.get(name)?.meanMs ?? null;
  const queue = histogram('queue');
  const waiting = metricRow('requests_waiting');
  const usesLittlesLaw = queue === null && waiting !== undefined && waiting.n >= minSamples;
  const rate = usesLittlesLaw ? await requestRate(database, executionId) : null;
  return {
    queueMs: queue ?? (usesLittlesLaw && rate !== null ? (waiting.mean / rate) * 1e3 : null),
    queueFrom:
      queue !== null
        ? {
            code: 'histogram',
            text: "the server's own histogram of queue times, its growth since the warm-up",
          }
        : usesLittlesLaw
          ? {
              code: 'littles_law',
              text: `Little's law: ${formatNumber(waiting.mean)} requests waiting on average (${waiting.n} samples) / requests per second`,
            }
          : null,
    prefillMs: histogram('prefill'),
    e2eMs: histogram('e2e'),
    clientE2eMs: await readClientMean(database, executionId, histogramMeans.get('e2e') ?? null),
    profile: serverProfile(workload),
  };
}

interface HistogramMean {
  meanMs: number;
  requests: number;
  /** The requests finished after this time. */
  since_ns: number;
}

/**
 * Mean of a server's histogram over the measured requests. The server counts a request when it finishes, so the baseline
 * reading is the last one that contains only warm-up requests. Null if the histogram did not grow.
 */
async function readHistogramMean(
  database: SessionDatabase,
  executionId: string,
  name: string,
): Promise<HistogramMean | null> {
  const [row] = await database.query<{ n: number; seconds: number; since_ns: number | null }>(
    `WITH reading AS (
       SELECT t_ns, max(value) FILTER (metric = $2) AS n, max(value) FILTER (metric = $3) AS seconds
       FROM telemetry WHERE execution_id = $1 AND scope = 'server' AND metric IN ($2, $3) GROUP BY t_ns),
     baseline AS (
       SELECT max(t_ns) AS t_ns FROM reading
       WHERE n - (SELECT min(n) FROM reading) <= (SELECT count(*) FROM requests WHERE execution_id = $1 AND warmup))
     SELECT max(n) - arg_min(n, t_ns) AS n, max(seconds) - arg_min(seconds, t_ns) AS seconds, min(t_ns) AS since_ns
     FROM reading WHERE t_ns >= (SELECT t_ns FROM baseline)`,
    [executionId, `${name}_requests_total`, `${name}_seconds_total`],
  );
  if (!row || row.since_ns === null || !(row.n > 0)) return null;
  return { meanMs: (row.seconds / row.n) * 1e3, requests: row.n, since_ns: row.since_ns };
}

/** The client's mean of the requests that the server counted, ms; null if their numbers differ. */
async function readClientMean(
  database: SessionDatabase,
  executionId: string,
  histogramMean: HistogramMean | null,
): Promise<number | null> {
  if (histogramMean === null) return null;
  const [row] = await database.query<{ n: number; ms: number | null }>(
    `SELECT count(*) AS n, avg(end_ns - sent_ns) / 1e6 AS ms FROM requests
     WHERE execution_id = $1 AND status = 'ok' AND end_ns > $2`,
    [executionId, histogramMean.since_ns],
  );
  return row && row.n === histogramMean.requests ? row.ms : null;
}

/** Requests answered per second during the load. */
async function requestRate(database: SessionDatabase, executionId: string): Promise<number | null> {
  const [row] = await database.query<{ n: number; seconds: number | null }>(
    `SELECT count(*) AS n, (max(end_ns) - min(sent_ns)) / 1e9 AS seconds FROM requests WHERE execution_id = $1 AND status = 'ok'`,
    [executionId],
  );
  return row && row.seconds !== null && row.seconds > 0 ? row.n / row.seconds : null;
}

/** Mean latencies of one point, ms. */
interface Means {
  e2e: number;
  ttft: number;
}

/** Whether two points are one run, as when a tool writes its summary and its requests to two files. */
const haveSameMeans = (a: Means, b: Means): boolean =>
  Math.abs(a.e2e - b.e2e) <= 1e-6 * a.e2e && Math.abs(a.ttft - b.ttft) <= 1e-6 * a.ttft;

/**
 * Waterfalls of another tool's results: a mean request from the file's mean latencies if defined as ours, else
 * recomputed from its requests (GuideLLM's end-to-end latency differs). The time to first token includes queue, network
 * and prefill, which no such file separates.
 */
export async function resultsWaterfalls(database: SessionDatabase): Promise<StageWaterfall[]> {
  const rows = await database.query<{
    capture_id: string;
    execution_id: string;
    point: number;
    label: string;
    name: string;
    value: number;
    unit: string;
    n: number | null;
    recomputed: boolean;
  }>(
    `SELECT capture_id, execution_id, point, label, name, value, unit, n, ${isRecomputedSql} AS recomputed FROM metrics
     WHERE same_definition AND statistic = 'mean' AND name IN ('e2e', 'ttft')
     ORDER BY recomputed, capture_id, point, name`,
  );
  // Summaries come first, because requests may not say at which load they were sent.
  const keys = [...new Set(rows.map(({ capture_id, point }) => `${capture_id} ${point}`))];
  const seenPoints: Means[] = [];
  return keys.flatMap((key) => {
    const pointRows = rows.filter(({ capture_id, point }) => `${capture_id} ${point}` === key);
    // Both from one source, because a file may list fewer requests than its means include.
    const pair = [false, true]
      .map((recomputed) => pointRows.filter((row) => row.recomputed === recomputed))
      .find((bothRows) => bothRows.length === 2);
    if (!pair) return [];
    const [e2e, ttft] = pair as [(typeof pointRows)[number], (typeof pointRows)[number]];
    const ms = ({ value, unit }: (typeof pointRows)[number]) => (unit === 's' ? value * 1e3 : value);
    const means = { e2e: ms(e2e), ttft: ms(ttft) };
    if (seenPoints.some((other) => haveSameMeans(other, means))) return [];
    seenPoints.push(means);
    const meanSql = (name: string, sign: string) =>
      `SELECT '${sign}mean ' || name AS what, n AS count, ${sign}value * CASE unit WHEN 's' THEN 1000 ELSE 1 END AS ms FROM metrics
       WHERE capture_id = ${literal(e2e.capture_id)} AND point = ${e2e.point} AND name = '${name}' AND statistic = 'mean' AND same_definition AND ${isRecomputedSql} = ${e2e.recomputed}`;
    return [
      requestStage(
        [{ nth: 0, lag_ms: 0, first_byte_ms: null, ttft_ms: ms(ttft), decode_ms: ms(e2e) - ms(ttft) }],
        {
          queueMs: null,
          queueFrom: null,
          prefillMs: null,
          e2eMs: null,
          clientE2eMs: null,
          profile: serverProfile(null),
        },
        {
          execution_id: e2e.execution_id,
          point: e2e.label,
          openLoop: false,
          where: null,
          roofline: missing('not_reported', "a results file does not record the server's batches"),
          sql: {
            decode: `${meanSql('e2e', '')} UNION ALL ${meanSql('ttft', '-')}`,
            ttft: meanSql('ttft', ''),
          },
          instances: e2e.n,
        },
      ),
    ];
  });
}
