import { gapParts } from '../model/bars.js';
import type { SessionDatabase } from '../session/query.js';
import type { TableName } from '../model/tables.js';
import type { TextExport } from './exporter.js';
import { joinPhase, joinStage } from './speedscope.js';

interface Family {
  name: string;
  type: 'summary' | 'gauge';
  unit: 'seconds' | 'bytes';
  help: string;
  /** Columns `value` (seconds or bytes, doubles) and the labels; one row per observation. */
  select: string;
  labels: string[];
  quantiles: number[];
}

const quantiles = [0.5, 0.9, 0.99];

function iterationFamily(name: string, help: string, value: string): Family {
  const select = `SELECT execution_id AS execution, ${value} / 1e9 AS value FROM iterations WHERE warmup IS NOT TRUE`;
  return { name, type: 'summary', unit: 'seconds', help, select, labels: ['execution'], quantiles };
}

/** Rows of a table with `kind` and `warmup` of their phase: the nearest enclosing phase, else the stage itself. */
function withPhase(table: TableName): string {
  return `${table} w ${joinStage('w')} ${joinPhase}
    WHERE coalesce(p.warmup, s.warmup) IS NOT TRUE`;
}

const phase = `coalesce(p.kind, s.kind, 'unattributed') AS stage`;

function workFamily(name: string, help: string, table: 'ops' | 'kernels', value: string): Family {
  return {
    name,
    type: 'summary',
    unit: 'seconds',
    help,
    select: `SELECT w.execution_id AS execution, ${phase}, coalesce(w.class, 'other') AS class, ${value} / 1e9 AS value
      FROM ${withPhase(table)}`,
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
    select: `SELECT w.execution_id AS execution, ${phase}, w.kind AS kind, CAST(${value} AS DOUBLE) AS value
      FROM ${withPhase('copies')}`,
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
  {
    name: 'inferscope_stage_seconds',
    type: 'summary',
    unit: 'seconds',
    help: 'Duration of each stage outside the warm-up; under a profiler, its overhead is included.',
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
        ) => `SELECT w.execution_id AS execution, ${phase}, '${cause}' AS cause, w.${cause}_ns / 1e9 AS value
          FROM ${withPhase('gaps')} AND w.device IS NOT NULL AND w.${cause}_ns > 0`,
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
  for (const family of families) yield* familyText(database, family);
  yield '# EOF\n';
};

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
  yield `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n# UNIT ${name} ${unit}\n`;
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

/** {a="x",b="y"} without empty labels. */
function labelText(labels: Record<string, string | number | null>): string {
  const pairs = Object.entries(labels).flatMap(([name, value]) =>
    value === null ? [] : [`${name}="${escapeLabel(String(value))}"`],
  );
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function escapeLabel(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
