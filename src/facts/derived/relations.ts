import { stepKindsSql } from '../../model/record.js';
import {
  type DerivedTable,
  derivedTables,
  isTimelineTable,
  type TimelineTable,
} from '../../model/derived-tables.js';
import type { TraceSource } from '../../model/documents/trace.js';
import { callNamesSql } from '../trace/call-names.js';
import { kernelCellsSql } from '../trace/kernel-cells.js';
import { exposedSql, gapSpanSql, stepGapsSql, windowSplitSql } from '../trace/phases.js';
import { literal, noStage, type TraceScope } from '../trace/scope.js';
import { placedSql, placesNeed } from '../trace/step-places.js';
import type { SteppedQuery } from '../../session/stepped-query.js';
import { countedKindSql } from '../trace/timeline.js';
import { instancesSql, windowClocks, windowsSql } from '../trace/windows.js';
import { hostGapsSql } from '../waterfall/host-split.js';
import { gapsInside, innerIdleSql, insideWindows } from '../waterfall/inner-sums.js';
import { allInnerWindowsSql } from '../waterfall/inner-windows.js';
import { loadingCalls, loadingSql } from '../waterfall/loading-code.js';
import { requestPartsOf } from '../waterfall/requests.js';
import { membersSql, spansSql, stepWindowsSql } from '../waterfall/stage-groups.js';
import {
  activitiesOfWindows,
  copyGroups,
  kernelGroups,
  nameGroups,
  windowIdleSql,
} from '../waterfall/window-sums.js';

/** How a derived table is made from other tables. */
interface Relation {
  needs: readonly TimelineTable[];
  /** view: a name for its SELECT; table: rows of one connection; shared: made once for all connections to the session. */
  storage: 'view' | 'table' | 'shared';
  rows(scope: TraceScope): Promise<SteppedQuery>;
}

type Rows = string | SteppedQuery;

function relation(
  storage: Relation['storage'],
  needs: readonly TimelineTable[],
  rows: (scope: TraceScope) => Rows | Promise<Rows>,
): Relation {
  return {
    needs,
    storage,
    async rows(scope) {
      const query = await rows(scope);
      return typeof query === 'string' ? { steps: {}, select: query } : query;
    },
  };
}

/** Recorded tables with rows of a rank, and of a device if they have devices. */
const recordedLevels = {
  kernels: 'device',
  copies: 'device',
  gaps: 'device',
  api_calls: 'rank',
  ops: 'rank',
} as const;

export type RecordedTable = keyof typeof recordedLevels;

/** SQL condition for the rows of the capture, rank and device that are shown. */
export const shownRowsSql = (table: RecordedTable, source: TraceSource): string =>
  whereOf(source, recordedLevels[table]);

/** Rows of a recorded table for the scope's rank, and for its device in tables with devices. */
const recordedRows = (table: RecordedTable): Relation =>
  relation('view', [], ({ source }) => `SELECT * FROM ${table} WHERE ${shownRowsSql(table, source)}`);

const withStep = (name: 'kernels' | 'copies' | 'gaps' | 'api' | 'ops'): Relation =>
  relation('view', [`rank_${name}`, ...placesNeed], async (scope) =>
    placedSql(scope, name, await isUnmarked(scope)),
  );

function whereOf(
  { attribution, focus }: TraceSource,
  level: 'capture' | 'rank' | 'device',
  captureId = attribution.capture_id,
): string {
  const equals = (column: string, value: number | null) =>
    value === null ? `${column} IS NULL` : `${column} = ${value}`;
  return [
    `execution_id = ${literal(attribution.execution_id)}`,
    `capture_id = ${literal(captureId)}`,
    ...(level === 'capture'
      ? []
      : [equals('rank', level === 'rank' ? (focus.process_rank ?? focus.rank) : focus.rank)]),
    ...(level === 'rank' && focus.other_threads
      ? [`(tid IS NULL OR tid NOT IN (${focus.other_threads.join(', ')}))`]
      : []),
    ...(level === 'device' ? [equals('device', focus.device)] : []),
  ].join(' AND ');
}

/** The stages that the capture's rows refer to. */
const stagesOf = (source: TraceSource, level: 'capture' | 'rank'): string =>
  whereOf(source, level, source.attribution.stages_capture_id);

/**
 * The place of every stage, and of rows without a stage. An inner join that loses no row takes half the time of an
 * outer one.
 */
const placesSql = (source: TraceSource): string => `WITH named AS (
       SELECT stage_id, parent_id, phase_id, ${countedKindSql('stages')} AS kind FROM stages WHERE ${stagesOf(source, 'rank')}),
     phases AS (SELECT * FROM named WHERE stage_id = phase_id),
     inside AS (
       SELECT p.stage_id, e.stage_id AS step_id FROM phases p
       JOIN named around ON around.stage_id = p.parent_id JOIN phases e ON e.stage_id = around.phase_id
       WHERE e.kind IN ('warmup', 'load') OR (p.kind = 'sampling' AND e.kind IN ${stepKindsSql})),
     outermost AS (
       SELECT i.stage_id, coalesce(third.step_id, second.step_id, i.step_id) AS step_id FROM inside i
       LEFT JOIN inside second ON second.stage_id = i.step_id LEFT JOIN inside third ON third.stage_id = second.step_id)
     SELECT s.stage_id, coalesce(p.kind, 'outside') AS phase, p.stage_id AS phase_id, coalesce(step_id, p.stage_id) AS step_id
     FROM named s LEFT JOIN phases p ON p.stage_id = s.phase_id LEFT JOIN outermost c ON c.stage_id = p.stage_id
     UNION ALL SELECT stage_id, 'outside', NULL, NULL FROM stages WHERE ${stagesOf(source, 'capture')} AND (${stagesOf(source, 'rank')}) IS NOT TRUE
     UNION ALL SELECT ${noStage}, 'outside', NULL, NULL`;

const isUnmarked = async (scope: TraceScope): Promise<boolean> =>
  (await windowClocks(scope)).some(({ kind }) => kind === 'outside');

const relationPerStep = (table: 'kernels' | 'copies', groups: Record<string, string>): Relation =>
  relation(
    'table',
    [`rank_${table}`, 'rank_kernels', 'rank_copies', 'stage_places', 'step_windows'],
    async (scope) => activitiesOfWindows(table, groups, await isUnmarked(scope)),
  );

const relationPerRange = (table: 'kernels' | 'copies', groups: Record<string, string>): Relation =>
  relation('table', ['rank_kernels', 'rank_copies', 'inner_windows'], (scope) =>
    insideWindows(scope, table, groups),
  );

/** How to make each derived table; model/derived-tables.ts describes the rows. */
export const relations: Readonly<Record<TimelineTable, Relation>> = {
  stage_places: relation('shared', [], ({ source }) => placesSql(source)),
  stages_in_phases: relation(
    'view',
    ['stage_places'],
    () => 'SELECT stage_id, phase AS kind, phase_id, step_id FROM stage_places WHERE phase_id IS NOT NULL',
  ),
  rank_kernels: recordedRows('kernels'),
  rank_copies: recordedRows('copies'),
  rank_gaps: recordedRows('gaps'),
  rank_api: recordedRows('api_calls'),
  rank_ops: recordedRows('ops'),
  phase_kernels: withStep('kernels'),
  phase_copies: withStep('copies'),
  phase_gaps: withStep('gaps'),
  phase_api: withStep('api'),
  phase_ops: withStep('ops'),
  phase_stages: relation(
    'view',
    ['stages_in_phases'],
    ({ source }) => `SELECT t.*, p.kind AS phase, p.step_id
     FROM (SELECT * FROM stages WHERE ${stagesOf(source, 'rank')}) t LEFT JOIN stages_in_phases p ON p.stage_id = t.stage_id`,
  ),
  instances: relation('shared', ['phase_stages', 'stages_in_phases'], ({ source }) => instancesSql(source)),
  windows: relation('table', ['instances', 'rank_kernels', 'stage_places'], async (scope) =>
    windowsSql(await windowClocks(scope), scope.source),
  ),
  request_parts: relation('table', ['windows', 'instances'], requestPartsOf),
  step_windows: relation('table', ['windows', 'request_parts'], () => stepWindowsSql),
  inner_windows: relation('table', ['windows', 'stages_in_phases', 'rank_kernels'], allInnerWindowsSql),
  spans: relation('table', ['windows', 'request_parts', 'inner_windows'], () => spansSql),
  members: relation('table', ['windows', 'request_parts', 'inner_windows'], () => membersSql),
  call_names: relation('shared', ['rank_api'], () => callNamesSql),
  kernel_cells: relation('shared', ['phase_kernels'], () => kernelCellsSql),
  window_kernels: relationPerStep('kernels', kernelGroups),
  window_kernel_names: relationPerStep('kernels', { ...kernelGroups, ...nameGroups }),
  window_copies: relationPerStep('copies', copyGroups),
  gap_span: relation('shared', ['rank_gaps'], () => gapSpanSql),
  step_gaps: relation('shared', ['rank_gaps', 'stage_places', 'windows'], async (scope) =>
    stepGapsSql(await isUnmarked(scope)),
  ),
  window_communication: relation('table', ['rank_kernels', 'windows'], () =>
    exposedSql('kernels', "class = 'communication'"),
  ),
  window_exposed_copies: relation('table', ['rank_copies', 'windows'], () => exposedSql('copies')),
  window_split: relation(
    'table',
    [
      'windows',
      'rank_kernels',
      'rank_gaps',
      'phase_kernels',
      'phase_copies',
      'gap_span',
      'step_gaps',
      'window_communication',
      'window_exposed_copies',
    ],
    windowSplitSql,
  ),
  window_idle: relation('table', ['rank_gaps', 'gap_span', 'step_gaps', 'step_windows'], windowIdleSql),
  inner_kernels: relationPerRange('kernels', kernelGroups),
  inner_kernel_names: relationPerRange('kernels', { ...kernelGroups, ...nameGroups }),
  inner_copies: relationPerRange('copies', copyGroups),
  inner_gaps: relation('table', ['rank_gaps', 'inner_windows'], (scope) => gapsInside(scope)),
  inner_idle: relation('table', ['inner_gaps', 'inner_kernels', 'inner_windows', 'gap_span'], (scope) =>
    innerIdleSql(scope),
  ),
  host_gaps: relation('table', ['rank_gaps', 'phase_gaps', 'rank_ops'], hostGapsSql),
  loading_calls: relation('table', ['rank_gaps', 'rank_api', 'windows', 'call_names'], async (scope) =>
    loadingSql(await loadingCalls(scope)),
  ),
};

/** Tables that every timeline analysis reads: rows of the recorded tables, with and without their phase. */
export const rowsOfScope = (Object.keys(derivedTables) as DerivedTable[])
  .filter(isTimelineTable)
  .filter((name) => ['rank_', 'phase_'].some((start) => name.startsWith(start)));
