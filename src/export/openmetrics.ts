import { gapParts } from '../model/bars.js';
import type { SessionDatabase } from '../session/query.js';
import type { TextExport } from './exporter.js';
import { isRecomputedSql } from '../model/metric-source.js';
import { makePlacedRows } from '../facts/derived/placed-rows.js';

interface Family {
  name: string;
  type: 'summary' | 'gauge';
  /** The name ends with it; null for counts. */
  unit: string | null;
  help: string;
  /** Columns `value` (seconds or bytes, doubles) and the labels; one row per observation. */
  select: string;
  labels: string[];
  quantiles: number[];
}

const quantiles = [0.5, 0.9, 0.99];

function iterationFamily(name: string, help: string, value: string): Family {
  const select = `SELECT execution_id AS execution, point, ${value} / 1e9 AS value FROM iterations WHERE warmup IS NOT TRUE`;
  return { name, type: 'summary', unit: 'seconds', help, select, labels: ['execution', 'point'], quantiles };
}

/** Requests of result files do not name their load, and their loads must not be pooled: resultFamilies has their figures. */
const measured =
  'FROM requests WHERE warmup IS NOT TRUE AND capture_id NOT IN (SELECT DISTINCT capture_id FROM metrics)';

function requestFamily(name: string, help: string, value: string): Family {
  const select = `SELECT execution_id AS execution, ${value} / 1e9 AS value ${measured} AND status = 'ok'`;
  return { name, type: 'summary', unit: 'seconds', help, select, labels: ['execution'], quantiles };
}

/** Sums of answered requests / the time from the first sent to the end of the last one, as `bench serve` shows them. */
function rateFamily(name: string, unit: string, help: string, sum: string): Family {
  return {
    name,
    type: 'gauge',
    unit,
    help,
    select: `SELECT execution_id AS execution, ${sum} * 1e9
        / nullif(max(coalesce(end_ns, sent_ns, scheduled_ns)) - min(coalesce(sent_ns, scheduled_ns)), 0) AS value
      ${measured} AND status <> 'cancelled' GROUP BY execution_id`,
    labels: ['execution'],
    quantiles: [],
  };
}

/** Rows of a table outside the warm-up, with the kind of their step as `place`. */
const placedRows = (table: 'ops' | 'kernels' | 'copies' | 'gaps'): string =>
  `FROM placed_${table} w WHERE place <> 'warmup'`;

function workFamily(name: string, help: string, table: 'ops' | 'kernels', value: string): Family {
  return {
    name,
    type: 'summary',
    unit: 'seconds',
    help,
    select: `SELECT w.execution_id AS execution, place AS stage, coalesce(w.class, 'other') AS class, ${value} / 1e9 AS value
      ${placedRows(table)}`,
    labels: ['execution', 'stage', 'class'],
    quantiles: [],
  };
}

function copyFamily(name: string, help: string, unit: Family['unit'], value: string): Family {
  return {
    name,
    type: 'summary',
    unit,
    help,
    select: `SELECT w.execution_id AS execution, place AS stage, w.kind AS kind, CAST(${value} AS DOUBLE) AS value
      ${placedRows('copies')}`,
    labels: ['execution', 'stage', 'kind'],
    quantiles: [],
  };
}

const families: Family[] = [
  iterationFamily('inferscope_ttft_seconds', 'Time to first token of each repeat.', 'ttft_ns'),
  iterationFamily(
    'inferscope_tpot_seconds',
    'Time per output token after the first, of each repeat.',
    'tpot_ns',
  ),
  iterationFamily('inferscope_e2e_seconds', 'Start to last token of each repeat.', '(end_ns - start_ns)'),
  requestFamily('inferscope_request_ttft_seconds', 'Time to first token of answered requests.', 'ttft_ns'),
  requestFamily(
    'inferscope_request_tpot_seconds',
    'Time per output token after the first, of answered requests.',
    'tpot_ns',
  ),
  requestFamily(
    'inferscope_request_itl_seconds',
    'Time between two tokens of answered requests.',
    'unnest(CAST(itl_ns AS DOUBLE[]))',
  ),
  requestFamily(
    'inferscope_request_e2e_seconds',
    'Sending to last token of answered requests.',
    '(end_ns - sent_ns)',
  ),
  {
    name: 'inferscope_requests',
    type: 'gauge',
    unit: null,
    help: 'Requests by status: ok, or the kind of failure.',
    select: `SELECT execution_id AS execution, status, count(*) AS value ${measured} GROUP BY ALL`,
    labels: ['execution', 'status'],
    quantiles: [],
  },
  rateFamily(
    'inferscope_requests_per_second',
    'requests_per_second',
    'Answered requests per second.',
    "count_if(status = 'ok')",
  ),
  rateFamily(
    'inferscope_output_tokens_per_second',
    'tokens_per_second',
    'Generated tokens of answered requests per second.',
    "sum(output_tokens) FILTER (status = 'ok')",
  ),
  {
    name: 'inferscope_stage_seconds',
    type: 'summary',
    unit: 'seconds',
    help: 'Duration of each stage on the host, outside the warm-up, with the overhead of a profiler. explain measures a step from its start to the next one, on the GPU where the host runs ahead.',
    select: `SELECT execution_id AS execution, kind AS stage, (end_ns - start_ns) / 1e9 AS value
      FROM stages WHERE warmup IS NOT TRUE`,
    labels: ['execution', 'stage'],
    quantiles,
  },
  workFamily(
    'inferscope_operator_seconds',
    'Time in operators without their children, by stage and class.',
    'ops',
    'coalesce(w.self_dur_ns, w.dur_ns)',
  ),
  workFamily(
    'inferscope_kernel_seconds',
    'Time of device kernels by stage and class.',
    'kernels',
    'w.dur_ns',
  ),
  {
    name: 'inferscope_device_idle_seconds',
    type: 'summary',
    unit: 'seconds',
    help: 'Time in which a device ran nothing, by stage and cause.',
    select: gapParts
      .map(
        (
          cause,
        ) => `SELECT w.execution_id AS execution, place AS stage, '${cause}' AS cause, w.${cause}_ns / 1e9 AS value
          ${placedRows('gaps')} AND w.device IS NOT NULL AND w.${cause}_ns > 0`,
      )
      .join(' UNION ALL '),
    labels: ['execution', 'stage', 'cause'],
    quantiles: [],
  },
  copyFamily(
    'inferscope_copy_seconds',
    'Time of copies and memsets by stage and direction.',
    'seconds',
    'w.dur_ns / 1e9',
  ),
  copyFamily(
    'inferscope_copy_bytes',
    'Bytes of copies and memsets by stage and direction.',
    'bytes',
    'w.bytes',
  ),
  {
    name: 'inferscope_memory_bytes',
    type: 'gauge',
    unit: 'bytes',
    help: 'Memory in use at the reported points of each process.',
    select: `SELECT execution_id AS execution, CAST(pid AS VARCHAR) AS pid, CAST(device AS VARCHAR) AS device, kind, point,
        CAST(bytes AS DOUBLE) AS value FROM memory WHERE point IS NOT NULL`,
    labels: ['execution', 'pid', 'device', 'kind', 'point'],
    quantiles: [],
  },
];

/**
 * OpenMetrics 1.0 text (https://prometheus.io/docs/specs/om/open_metrics_spec/). Quantiles are type 7 (DuckDB's
 * quantile_cont). Executions are distinguished by a label: read timing at execution="clean".
 */
export const openMetrics: TextExport = async function* (session, database) {
  await makePlacedRows(session, database);
  yield '# HELP inferscope_session The session these figures are of.\n# TYPE inferscope_session info\n';
  const { workload } = session.manifest;
  const about = {
    id: session.id,
    model: workload?.model?.name ?? null,
    dtype: workload?.model?.dtype ?? null,
    engine: workload?.engine.name ?? null,
    device: workload?.device ?? null,
  };
  yield `inferscope_session_info${labelText(about)} 1\n`;
  for (const family of [...families, ...(await resultFamilies(database))])
    yield* familyText(database, family);
  yield '# EOF\n';
};

/** OpenMetrics' base units of a result's unit, and the factor to them. */
const baseUnits: Readonly<Record<string, readonly [unit: string, factor: number]>> = {
  ms: ['seconds', 1e-3],
  s: ['seconds', 1],
  B: ['bytes', 1],
  GiB: ['bytes', 2 ** 30],
  J: ['joules', 1],
  'tok/s': ['tokens_per_second', 1],
  'req/s': ['requests_per_second', 1],
  '%': ['percent', 1],
};

/** A part of a metric's name: lower case, digits and underscores. */
const nameOf = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll('/', '_per_')
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replaceAll(/^_|_$/g, '');

/** One gauge per metric and unit of imported results; `statistic` is a label. */
async function resultFamilies(database: SessionDatabase): Promise<Family[]> {
  const rows = await database.query<{ name: string; unit: string; definition: string | null }>(
    'SELECT name, unit, any_value(definition) AS definition FROM metrics GROUP BY ALL ORDER BY name, unit',
  );
  return rows.map(({ name, unit: recorded, definition }): Family => {
    const [unit, factor] = baseUnits[recorded] ?? [nameOf(recorded), 1];
    const stem = `inferscope_result_${nameOf(name)}`;
    const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`;
    return {
      name: unit === '' || stem.endsWith(`_${unit}`) ? stem : `${stem}_${unit}`,
      type: 'gauge',
      unit: unit === '' ? null : unit,
      help: definition ?? 'Not defined in the file.',
      select: `SELECT capture_id AS capture, CAST(point AS VARCHAR) AS point, label, statistic, value * ${factor} AS value,
          CASE WHEN ${isRecomputedSql} THEN 'requests' ELSE 'file' END AS origin
        FROM metrics WHERE name = ${quoted(name)} AND unit = ${quoted(recorded)}`,
      labels: ['capture', 'point', 'label', 'statistic', 'origin'],
      quantiles: [],
    };
  });
}

async function* familyText(database: SessionDatabase, family: Family): AsyncGenerator<string> {
  const { name, type, unit, help, labels } = family;
  const keys = labels.join(', ');
  const measures = [
    'count(*) AS _count',
    'sum(value) AS _sum',
    'max(value) AS _max',
    ...family.quantiles.map((q, i) => `quantile_cont(value, ${q}) AS _q${i}`),
  ];
  const rows = await database.query<Record<string, string | number | null>>(
    `SELECT ${keys}, ${measures.join(', ')} FROM (${family.select}) WHERE value IS NOT NULL
     GROUP BY ${keys} ORDER BY ${keys}`,
  );
  if (rows.length === 0) return;
  yield `# HELP ${name} ${escapeLabel(help)}\n# TYPE ${name} ${type}\n`;
  if (unit !== null) yield `# UNIT ${name} ${unit}\n`;
  for (const row of rows) {
    const labelValues = Object.fromEntries(labels.map((label) => [label, row[label] ?? null]));
    if (type === 'gauge') {
      yield `${name}${labelText(labelValues)} ${row['_max']}\n`;
      continue;
    }
    for (const [i, q] of family.quantiles.entries()) {
      yield `${name}${labelText({ ...labelValues, quantile: q })} ${row[`_q${i}`]}\n`;
    }
    yield `${name}_count${labelText(labelValues)} ${row['_count']}\n${name}_sum${labelText(labelValues)} ${row['_sum']}\n`;
  }
}

/** {a="x",b="y"} without empty and unknown labels. */
function labelText(labels: Record<string, string | number | null>): string {
  const pairs = Object.entries(labels).flatMap(([name, value]) =>
    value === null || value === 'unknown' ? [] : [`${name}="${escapeLabel(String(value))}"`],
  );
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function escapeLabel(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
