import { hostPart, gapParts } from '../../model/bars.js';
import { idleIn, phaseTime, type Slowdown, slowdown } from '../../model/headline-time.js';
import type { PhaseInstance, PhaseKind, TracePhase } from '../../model/documents/trace.js';
import { removeProfilerOverhead } from '../without-profiler.js';
import { activitiesInside } from './activities-inside.js';
import { readBatches } from './batches.js';
import { cleanTimeOf } from './clean-time.js';
import { literal, placeKey, type TraceScope } from './scope.js';
import { spreadColumns, spreadOf } from './spread.js';
import type { SteppedQuery } from '../../session/stepped-query.js';
import type { PhaseClock } from './windows.js';

/**
 * Time before the first activity of the capture and after the last one. It counts as host time: most of loading is
 * before the first launch.
 */
export const edgeCauses = ['start_up', 'shut_down'] as const;
const causeIds = [...gapParts, ...edgeCauses.map((edge) => `host.${edge}`)];

/** Sampling is inside steps, so its windows are a separate level. */
export const stepsLevel = "kind <> 'sampling'";
const samplingLevel = "kind = 'sampling'";

const maxRows = 512;
export const phaseOrder: readonly PhaseKind[] = [
  'load',
  'warmup',
  'prefill',
  'decode',
  'mixed',
  'training',
  'sampling',
  'other',
  'outside',
];

/**
 * Wall time of every phase and the device's activity in it. Gaps are cut at the window's edges part by part. Time
 * before the capture's first activity and after its last is host time. busy = wall − idle. Profiler overhead is idle
 * time; if a clean execution shows it, it is removed from the causes as in a waterfall.
 */
export async function readPhases(scope: TraceScope, clocks: PhaseClock[]): Promise<TracePhase[]> {
  const { database } = scope;
  await scope.need('window_split');
  const mean = (column: string) => `avg(${column}) AS ${column}`;
  const rows = await database.query<Record<string, number> & { kind: PhaseKind }>(
    `SELECT kind, ${spreadColumns('wall_ns')}, ${['idle', 'comm', 'copy', 'kernels', 'copies', 'launches', 'kernel_time', ...causeIds.map(hostPart)].map(mean).join(', ')}
     FROM window_split GROUP BY kind`,
  );
  const batchesByKind = await readBatches(scope, clocks);
  const results: TracePhase[] = [];
  for (const row of rows.toSorted((a, b) => phaseOrder.indexOf(a.kind) - phaseOrder.indexOf(b.kind))) {
    const { kind } = row;
    const wall = spreadOf(row)!;
    const { clock = 'host', clockWhy = '' } = clocks.find((phaseClock) => phaseClock.kind === kind) ?? {};
    const clean_ms = await cleanTimeOf(scope, { kind, clock });
    const timeNs = 1e6 * phaseTime({ clean_ms, wall }).ms;
    const idleNs = row['idle'] ?? 0;
    const busyNs = wall.mean_ns - idleNs;
    const factors = slowdown({ busy: busyNs, idle: idleNs }, timeNs);
    const device = splitWall(wall.mean_ns, row, factors);
    const idle = idleIn(timeNs, device.busy_ns);
    const parts = causeIds.map((id) => ({ id, ms: (factors.idle * (row[hostPart(id)] ?? 0)) / 1e6 }));
    const profiledNs = factors.busy * busyNs + factors.idle * idleNs;
    const causes = removeProfilerOverhead(parts, (profiledNs - timeNs) / 1e6)
      .map(({ id, ms }) => ({ id, ns: 1e6 * ms, share: timeNs > 0 ? (1e6 * ms) / timeNs : 0 }))
      .filter(({ id, ns }) => ns > 0 && id !== 'profiler_overhead')
      .toSorted((a, b) => b.ns - a.ns);
    results.push({
      kind,
      instances: wall.count,
      wall,
      clock,
      clock_why: clockWhy,
      clean_ms,
      ...device,
      idle_ns: idle.idle,
      idle_share: idle.share,
      idle_by_cause: causes,
      main_cause: causes[0]?.id ?? null,
      kernels: row['kernels'] ?? 0,
      copies: row['copies'] ?? 0,
      launches: row['launches'] ?? 0,
      kernel_ns: row['kernel_time'] ?? 0,
      by_batch: batchesByKind.get(kind) ?? [],
      rows: await readInstanceRows(scope, kind),
    });
  }
  return scope.source.gpu_used ? results : results.map(withoutGpu);
}

/** Without a device there is no idle time, so only wall times are reported. */
function withoutGpu(phase: TracePhase): TracePhase {
  const noActivity = { busy_ns: 0, compute_ns: 0, exposed_comm_ns: 0, exposed_copy_ns: 0 };
  const withoutBusy = ({ wall_ns }: PhaseInstance) => ({ ...noActivity, idle_ns: wall_ns, idle_share: 1 });
  return {
    ...phase,
    ...noActivity,
    idle_ns: 1e6 * phaseTime(phase).ms,
    idle_share: 1,
    idle_by_cause: [],
    main_cause: null,
    rows: phase.rows.map((row) => ({ ...row, ...withoutBusy(row) })),
  };
}

function splitWall(
  wall: number,
  row: Record<string, number | string | null>,
  factors: Slowdown = { busy: 1, idle: 1 },
) {
  const numberOf = (name: string) => Number(row[name] ?? 0);
  const busy = wall - numberOf('idle');
  return {
    busy_ns: factors.busy * busy,
    compute_ns: factors.busy * (busy - numberOf('comm') - numberOf('copy')),
    exposed_comm_ns: factors.busy * numberOf('comm'),
    exposed_copy_ns: factors.busy * numberOf('copy'),
    idle_ns: numberOf('idle'),
    idle_share: wall > 0 ? numberOf('idle') / wall : 0,
  };
}

/**
 * Exclusive time of some activities in each window, computed again for those that a window cuts.
 * @param where condition on the rows
 */
export function exposedSql(table: 'kernels' | 'copies', where = 'true'): SteppedQuery {
  const { steps, select } = activitiesInside(
    table,
    {},
    '(SELECT stage_id, start_ns, end_ns, NULL::BIGINT AS host_ns FROM windows)',
    `exclusive_ns > 0 AND ${where}`,
  );
  return { steps, select: `SELECT stage_id, sum(ns) AS ns FROM (${select}) GROUP BY stage_id` };
}

export async function windowSplitSql({ database, source }: TraceScope): Promise<SteppedQuery> {
  const kinds = await database.query<{ kind: string }>(`SELECT DISTINCT kind FROM windows`);
  const hasSampling = kinds.some(({ kind }) => kind === 'sampling');
  const inGraphs = await database.query('SELECT 1 FROM rank_kernels WHERE graph_node IS NOT NULL LIMIT 1');
  const launched = launchedSql(hasSampling, inGraphs.length > 0);
  const gaps = {
    split_gaps: gapsOfWindows(stepsLevel, 'windows', selectStepGaps),
    ...(hasSampling ? { split_sampling_gaps: gapsOfWindows(samplingLevel) } : {}),
  };
  return {
    steps: gaps,
    select: `WITH gap AS (SELECT stage_id, ${gapParts.map((part) => `sum(${part}) AS ${part}`).join(', ')}
       FROM (${Object.keys(gaps)
         .map((step) => `FROM ${step}`)
         .join(' UNION ALL ')}) GROUP BY stage_id),
     launched AS (${launched.kernels}),
     copied AS (${launched.copies}),
     edge AS (SELECT least(${source.start_ns}, min(start_ns)) AS first_ns, greatest(${source.end_ns}, max(start_ns + dur_ns)) AS last_ns FROM gap_span),
     edge_times AS (SELECT stage_id, greatest(0, least(end_ns, first_ns) - start_ns)::DOUBLE AS start_up,
                  greatest(0, end_ns - greatest(start_ns, last_ns))::DOUBLE AS shut_down FROM windows, edge)
     SELECT w.*, w.end_ns - w.start_ns AS wall_ns, start_up, shut_down, ${gapParts
       .map((part) => `coalesce(${part}, 0)::DOUBLE AS ${part}`)
       .join(', ')},
       (${gapParts.map((part) => `coalesce(${part}, 0)`).join(' + ')} + start_up + shut_down)::DOUBLE AS idle,
       coalesce(comm.ns, 0)::DOUBLE AS comm, coalesce(copy.ns, 0)::DOUBLE AS copy, coalesce(l.kernels, 0) AS kernels,
       coalesce(l.launches, 0) AS launches, coalesce(l.kernel_time, 0)::DOUBLE AS kernel_time, coalesce(copies, 0) AS copies
     FROM windows w JOIN edge_times USING (stage_id) LEFT JOIN gap USING (stage_id) LEFT JOIN window_communication comm USING (stage_id)
     LEFT JOIN window_exposed_copies copy USING (stage_id) LEFT JOIN launched l USING (stage_id) LEFT JOIN copied USING (stage_id)`,
  };
}

/** Above every stage id and every time of a session. */
const unmatchedKey = 2n ** 60n;

/** One row that covers all gaps of the analyzed device, from the first start to the last end. */
export const gapSpanSql =
  'SELECT min(start_ns) AS start_ns, max(start_ns + dur_ns) - min(start_ns) AS dur_ns FROM rank_gaps';

/**
 * The first pass of gapsOfWindows over windows of steps, shared by the split of phases and the waterfall: millions of
 * gaps become one row per window, plus one per gap outside of windows.
 */
export const stepGapsSql = (unmarked: boolean): string =>
  unmarked ? `SELECT 0::BIGINT AS key, ${sumsOfParts} FROM rank_gaps` : gapsByWindow(stepsLevel, 'windows');

export const selectStepGaps = 'SELECT * FROM step_gaps';

const sumsOfParts = gapParts
  .map((part) => `coalesce(sum(coalesce(${part}_ns, 0)), 0)::BIGINT AS ${part}`)
  .join(', ');

const windowsOf = (level: string, table: string): string =>
  `SELECT stage_id AS window_id, start_ns AS w_start, end_ns AS w_end FROM ${table} WHERE ${level}`;

/** SQL of (key, gap parts). The key is the window's id, else the gap's start plus unmatchedKey, which is above every id. */
function gapsByWindow(level: string, table: string): string {
  // One key for both kinds of gaps, because grouping millions of rows by two takes twice as long. Gaps of a device do
  // not overlap and equal the sum of their parts, so the start identifies a gap.
  return `WITH candidates AS (SELECT p.stage_id, w.* FROM stage_places p LEFT JOIN (${windowsOf(level, table)}) w ON w.window_id = ${level === samplingLevel ? 'p.phase_id' : 'p.step_id'})
      SELECT CASE WHEN start_ns >= w_start AND start_ns + dur_ns <= w_end THEN window_id ELSE start_ns + ${unmatchedKey} END AS key, ${sumsOfParts}
      FROM rank_gaps g JOIN candidates ON candidates.stage_id = ${placeKey('g')} GROUP BY key`;
}

/**
 * Idle time by part in each window of a level, where windows do not overlap. Nearly every gap is inside the window of
 * the step that launched the work after it, which one hash join finds. Any other gap is looked up by its start, and if
 * it crosses that window's edge, it is cut part by part over all windows it overlaps.
 * @param table of windows; tables other than `windows` contain only steps
 */
export function gapsOfWindows(
  level: string,
  table = 'windows',
  grouped = gapsByWindow(level, table),
): string {
  const clipped = gapParts.map((part, i) => {
    const start = ['g_start', ...gapParts.slice(0, i)].join(' + ');
    return `sum(greatest(0, least(w_end, ${start} + ${part}) - greatest(w_start, ${start}))) AS ${part}`;
  });
  // Joins separate the two kinds of keys: a filter would be pushed below the grouping and run for every row.
  return `WITH w AS (SELECT *, row_number() OVER ordered AS nth, max(w_end) OVER ordered AS reach FROM (${windowsOf(level, table)})
      WINDOW ordered AS (ORDER BY w_start, window_id ROWS UNBOUNDED PRECEDING)),
    grouped AS (${grouped}),
    known AS MATERIALIZED (
      SELECT key, CASE WHEN key >= ${unmatchedKey / 2n} THEN key - ${unmatchedKey} END AS g_start,
        CASE WHEN key >= ${unmatchedKey / 2n} THEN key - ${unmatchedKey} + ${gapParts.join(' + ')} END AS g_end, ${gapParts.join(', ')} FROM grouped),
    first_window AS MATERIALIZED (SELECT k.*, CASE WHEN g_end <= w_end THEN window_id END AS inside
      FROM known k ASOF JOIN (SELECT * FROM w UNION ALL SELECT NULL, -${unmatchedKey}, -${unmatchedKey}, 0, 0) started ON k.g_start >= started.w_start),
    overlapping AS (SELECT l.*, unnest(range(first.nth, last.nth + 1)) AS nth
      FROM (SELECT * FROM first_window WHERE inside IS NULL) l ASOF JOIN (SELECT reach, min(nth) AS nth FROM w GROUP BY reach) first ON l.g_start < first.reach
      ASOF JOIN (SELECT w_start, max(nth) AS nth FROM w GROUP BY w_start) last ON l.g_end > last.w_start)
    SELECT key AS stage_id, ${gapParts.join(', ')} FROM known JOIN w ON w.window_id = key
    UNION ALL
    SELECT inside AS stage_id, ${gapParts.join(', ')} FROM first_window WHERE inside IS NOT NULL
    UNION ALL
    SELECT w.window_id AS stage_id, ${clipped.join(', ')} FROM overlapping JOIN w USING (nth)
    WHERE g_start < w_end AND g_end > w_start GROUP BY w.window_id`;
}

/**
 * Kernels, their launching API calls, and copies by window. Nodes of a CUDA graph share the correlation id of one
 * launch. Every other kernel counts one launch, even if the call was not recorded. Sampling inside a step counts in the
 * step and in its own window.
 */
function launchedSql(hasSampling: boolean, inGraphs: boolean): { kernels: string; copies: string } {
  // Counting distinct ids is the slowest part.
  const launches = inGraphs
    ? 'count_if(graph_node IS NULL) + count(DISTINCT CASE WHEN graph_node IS NOT NULL THEN correlation END)'
    : 'count(*)';
  const kernels = `count(*) AS kernels, sum(dur_ns) AS kernel_time, ${launches} AS launches`;
  const countSql = (columns: string, table: string) => {
    const steps = `SELECT step_id AS stage_id, ${columns} FROM ${table} WHERE step_id IS NOT NULL GROUP BY step_id`;
    return hasSampling
      ? `${steps} UNION ALL SELECT phase_id, ${columns} FROM ${table} WHERE phase = 'sampling' AND step_id <> phase_id GROUP BY phase_id`
      : steps;
  };
  return {
    kernels: countSql(kernels, 'phase_kernels'),
    copies: countSql('count(*) AS copies', 'phase_copies'),
  };
}

async function readInstanceRows({ database }: TraceScope, kind: PhaseKind): Promise<PhaseInstance[]> {
  const rows = await database.query<
    Record<string, number> & {
      raw_name: string | null;
      iteration: number | null;
      step_index: number | null;
    }
  >(`SELECT * FROM window_split WHERE kind = ${literal(kind)} ORDER BY start_ns, stage_id LIMIT ${maxRows}`);
  return rows.map((row) => ({
    stage_id: row['stage_id'] ?? 0,
    label: row.step_index === null ? (row.raw_name ?? kind) : `${kind} ${row.step_index}`,
    iteration: row.iteration,
    step_index: row.step_index,
    start_ns: row['start_ns'] ?? 0,
    wall_ns: row['wall_ns'] ?? 0,
    ...splitWall(row['wall_ns'] ?? 0, row),
    kernels: row['kernels'] ?? 0,
    copies: row['copies'] ?? 0,
  }));
}
