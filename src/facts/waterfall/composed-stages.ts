import type { StageWaterfall, WaterfallBar } from '../../model/documents/explain.js';
import { type Figure, figure, missing } from '../../model/figure.js';
import type { SessionDatabase } from '../../session/query.js';
import { meanOverLaunches } from '../statistics.js';
import { literal } from '../trace/scope.js';
import { orderedIds } from './bar-order.js';
import { describeBar } from './words.js';
import { formatMs } from '../../vocabulary/format.js';

/** Repeats of a run or of a benchmark point, one request or batch each, on the first rank. */
interface Repeats {
  /** Mean from start to last token, ms. */
  e2e: Figure;
  /** Decode steps per repeat. */
  steps: number;
}

/** Timed or warm-up repeats; null if none were recorded. All are assumed to have as many steps as the first. */
export async function readRepeats(
  database: SessionDatabase,
  { executionId, point, warmup }: { executionId: string; point: string | null; warmup: boolean },
): Promise<Repeats | null> {
  const rows = await database.query<{ launch: number; ms: number; steps: number }>(
    `SELECT launch, (end_ns - start_ns) / 1e6 AS ms, output_len - 1 AS steps FROM iterations WHERE ${repeatsWhere(executionId, point, warmup)} ORDER BY start_ns`,
  );
  const [first] = rows;
  if (!first) return null;
  const repeats = rows.map(({ launch, ms }) => ({ launch, value: ms }));
  return { e2e: meanOverLaunches(repeats, 'ms', 'iterations.end_ns − start_ns'), steps: first.steps };
}

const repeatsWhere = (executionId: string, point: string | null, warmup: boolean): string =>
  `execution_id = ${literal(executionId)} AND ${warmup ? '' : 'NOT '}coalesce(warmup, false) AND coalesce(rank, 0) = 0${point === null ? '' : ` AND point = ${literal(point)}`}`;

/**
 * A whole request: the summed bars of its prefill and decode steps, and the time between and after them. A warm-up has
 * the same bars at their steady-state time, and the extra time of the first runs as `unattributed`.
 */
export function composedStage(
  kind: 'request' | 'warmup',
  repeats: Repeats,
  { prefill, decode }: { prefill: StageWaterfall; decode: StageWaterfall | null },
): StageWaterfall | null {
  const { e2e } = repeats;
  if (e2e.value === null) return null;
  const measured = e2e.value;
  const stageFacts = [
    { stage: prefill, times: 1 },
    ...(decode ? [{ stage: decode, times: repeats.steps }] : []),
  ];
  const ms = new Map<string, number>();
  for (const { stage, times } of stageFacts)
    for (const bar of stage.bars) ms.set(bar.id, (ms.get(bar.id) ?? 0) + bar.ms * times);
  const restMs = measured - [...ms.values()].reduce((sum, value) => sum + value, 0);
  const restId = kind === 'request' ? 'host.loop' : 'unattributed';
  ms.set(restId, (ms.get(restId) ?? 0) + restMs);
  const parts = [...ms].map(([id, value]) => ({ id, ms: value }));
  if (!ms.has('unattributed')) parts.push({ id: 'unattributed', ms: 0 });
  const stageBars = stageFacts.flatMap(({ stage }) => stage.bars);
  const bars = orderedIds(parts).map((id): WaterfallBar => {
    const stageBar = stageBars.find((bar) => bar.id === id);
    const value = parts.find((part) => part.id === id)!.ms;
    return {
      id,
      ms: value,
      share: value / measured,
      count: null,
      label: stageBar?.label ?? '',
      confidence: stageBar?.confidence ?? 'medium',
      confidence_why: stageBar?.confidence_why ?? '',
      better_capture: stageBar?.better_capture ?? null,
      ...(stageBar ? {} : describeBar(id, { peaksMeasured: true, kind })),
      sql: sumSql(id, stageFacts, id === restId ? restMs : 0),
      note: noteOf(id, value, { kind, restId, restMs }),
      parts: [],
    };
  });
  const roofs = stageFacts.map(({ stage, times }) => [stage.roofline_ms, times] as const);
  const missingRoof = roofs.find(([roof]) => roof.value === null);
  return {
    ...prefill,
    kind,
    measured_ms: e2e,
    median_ms: null,
    p10_ms: null,
    instances: e2e.n ?? 1,
    clock_why: `the engine's own time stamps: a prefill and ${decode ? repeats.steps : 0} decode steps, each as its mean`,
    clean_ms: e2e,
    bound: null,
    new_tokens: null,
    sequences: null,
    roofline_ms: missingRoof
      ? missingRoof[0]
      : figure(
          roofs.reduce((sum, [roof, times]) => sum + (roof.value ?? 0) * times, 0),
          'ms',
          'Σ over its steps of max(Σ FLOPs / peak, Σ bytes / bandwidth)',
        ),
    bars,
    sum_error_share: Math.abs(bars.reduce((sum, bar) => sum + bar.ms, 0) - measured) / measured,
    rows: [],
    ranks: [{ rank: null, device: null, measured_ms: measured }],
  };
}

/** Rows of the stages' queries, weighted by how often each stage runs; null if no stage has a query. */
function sumSql(
  id: string,
  stages: readonly { stage: StageWaterfall; times: number }[],
  restMs: number,
): string | null {
  const queries = stages.flatMap(({ stage, times }) => {
    const bar = stage.bars.find((candidate) => candidate.id === id);
    if (!bar) return [];
    return [
      bar.sql === null
        ? { hasSql: false, sql: `SELECT '${stage.kind}' AS what, NULL AS count, ${bar.ms * times} AS ms` }
        : {
            hasSql: true,
            sql: `SELECT '${stage.kind}: ' || what AS what, count * ${times} AS count, ms * ${times} AS ms FROM (${bar.sql})`,
          },
    ];
  });
  if (!queries.some(({ hasSql }) => hasSql)) return null;
  const remainder = restMs === 0 ? [] : [`SELECT '(between its stages)', NULL, ${restMs}`];
  return [...queries.map(({ sql }) => sql), ...remainder].join('\nUNION ALL ');
}

function noteOf(
  id: string,
  ms: number,
  { kind, restId, restMs }: { kind: 'request' | 'warmup'; restId: string; restMs: number },
): string | null {
  if (id === restId && kind === 'warmup') {
    const negativeNote = ms < 0 && restMs >= 0 ? ', and negative parts of its stages' : '';
    return restMs >= 0
      ? `${formatMs(restMs)} more than the same work in steady state: first use of memory, code and caches${negativeNote}`
      : `${formatMs(-restMs)} less than the same work later`;
  }
  if (id === restId && restMs !== 0) {
    return `with ${formatMs(restMs)} between and after its stages: sampling the first token, start and end`;
  }
  if (id === 'roofline') return 'Σ over its steps: a step waits for the token of the previous one';
  return ms < 0 ? 'negative in its stages' : null;
}

/** Model loading as the engine recorded it: only its start and end are known. */
export async function readLoadStage(
  database: SessionDatabase,
  executionId: string,
  source: StageWaterfall['source'],
): Promise<StageWaterfall | null> {
  const rows = await database.query<{ pid: number; ms: number }>(
    `SELECT pid, (end_ns - start_ns) / 1e6 AS ms FROM stages WHERE execution_id = ${literal(executionId)} AND kind = 'load' AND coalesce(rank, 0) = 0 ORDER BY start_ns`,
  );
  if (rows.length === 0) return null;
  const time = meanOverLaunches(
    rows.map(({ pid, ms }) => ({ launch: pid, value: ms })),
    'ms',
    "stages: the engine's loading",
  );
  const measured = time.value ?? 0;
  return {
    kind: 'load',
    name: null,
    source,
    execution_id: executionId,
    point: null,
    instances: rows.length,
    measured_ms: time,
    median_ms: null,
    p10_ms: null,
    clock: 'host',
    clock_why: "the engine's own time stamps",
    clean_ms: time,
    roofline_ms: missing('disk_unknown', 'the disk rate for the weights is not known'),
    bound: null,
    new_tokens: null,
    roofs: [],
    bars: [
      {
        id: 'unattributed',
        ms: measured,
        share: 1,
        count: null,
        ...describeBar('unattributed', { peaksMeasured: true, kind: 'load' }),
        sql: `SELECT 'process ' || pid AS what, 1 AS count, (end_ns - start_ns) / 1e6 / ${rows.length} AS ms FROM stages WHERE execution_id = ${literal(executionId)} AND kind = 'load' AND coalesce(rank, 0) = 0 ORDER BY 3 DESC`,
        note: 'reading and preparing the model: no details were recorded',
        parts: [],
      },
    ],
    sum_error_share: 0,
    rows: [],
    ranks: [{ rank: null, device: null, measured_ms: measured }],
  };
}
