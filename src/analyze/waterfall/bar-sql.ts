import type { TraceSource } from '../../model/documents/trace.js';
import { literal } from '../trace/scope.js';
import type { PhaseClock } from '../trace/windows.js';
import { frameworkShareSql } from './host-split.js';
import { activitiesInside } from '../trace/activities-inside.js';
import { gapsInside } from './inner-sums.js';
import { type InnerGroup, innerWindowsSql } from './inner-windows.js';
import { loadingSql } from './loading-code.js';
import { standaloneSql } from './standalone.js';
import { asStatement } from '../trace/stepped-query.js';
import { activitiesOfWindows, copyGroups, edgeSums, gapSums } from './window-sums.js';
import type { StageGroup } from './stage-group.js';

export interface BarSqlContext {
  source: TraceSource;
  clocks: readonly PhaseClock[];
  group: StageGroup | InnerGroup;
  instances: number;
  /** Calls that load code, where they have a bar. */
  loadingCalls: readonly string[];
  /** Rows that are arithmetic, ms of a mean instance: necessary time, what the profiler added. */
  constants: { label: string; ms: number }[];
}

/**
 * The query behind a bar, for `inferscope sql --session ID`: column `ms` is of a mean instance and sums to the bar.
 * @returns null for bars that are arithmetic
 */
export function barSql(id: string, context: BarSqlContext): string | null {
  const rows = rowsOf(id, context);
  if (rows === null) return null;
  const constants = context.constants.map(
    ({ label, ms }) => ` UNION ALL SELECT ${literal(label)}, NULL, ${ms}`,
  );
  const { source, clocks, group } = context;
  const inner = 'lastStartNs' in group ? { inner_windows: innerWindowsSql(group, source) } : {};
  return standaloneSql(`${rows}${constants.join('')} ORDER BY 3 DESC`, source, clocks, inner);
}

/** Where the windows of a group come from, and which sums are its own. */
interface Level {
  windows: string;
  gaps: string;
  activities(table: 'kernels' | 'copies', groups: Record<string, string>, where?: string): string;
  /** Joins sums by window to the group. */
  of: string;
}

function levelOf({ group, clocks }: BarSqlContext): Level {
  const unmarked = clocks.some((clock) => clock.kind === 'outside');
  switch (group.level) {
    case 'steps':
      return {
        windows: 'windows',
        gaps: 'window_gaps',
        activities: (table, groups, where) =>
          asStatement(activitiesOfWindows(table, groups, unmarked, undefined, where)),
        of: `JOIN windows USING (stage_id) WHERE windows.kind = ${literal(group.kind)}`,
      };
    case 'request':
      return {
        windows: 'step_windows',
        gaps: `(${gapSums(false, 'step_windows')})`,
        activities: (table, groups, where) =>
          asStatement(activitiesOfWindows(table, groups, false, 'step_windows', where)),
        of: 'JOIN request_parts USING (stage_id)',
      };
    case 'inner':
      return {
        windows: 'inner_windows',
        gaps: `(${gapsInside()})`,
        activities: (table, groups, where) =>
          `SELECT * FROM (${asStatement(activitiesInside(table, groups, 'inner_windows', where))}) WHERE NOT earlier`,
        of: 'JOIN inner_windows USING (stage_id)',
      };
  }
}

function rowsOf(id: string, context: BarSqlContext): string | null {
  const { source, clocks, instances, group, loadingCalls } = context;
  const unmarked = clocks.some((clock) => clock.kind === 'outside');
  const [head = '', tail = ''] = id.split('.');
  const level = levelOf(context);
  const { of } = level;
  const activities = (
    table: 'kernels' | 'copies',
    groups: Record<string, string>,
    where: string,
    label: string,
  ) =>
    `SELECT ${label} AS what, sum(n) / ${instances} AS count, sum(ns) / 1e6 / ${instances} AS ms
     FROM (${level.activities(table, groups, where)}) ${of} GROUP BY 1`;
  const gaps = (expression: string, more = '') =>
    `SELECT stage_id::VARCHAR AS what, NULL::DOUBLE AS count, sum(${expression}) / 1e6 / ${instances} AS ms FROM ${level.gaps} ${more} ${of} GROUP BY 1`;
  const kernel = { kernel: "coalesce(short_name, name, '?')" };
  switch (head) {
    case 'inefficiency':
    case 'nonessential':
    case 'kernels':
      return activities('kernels', kernel, `coalesce(class, 'other') = ${literal(tail)}`, 'kernel');
    case 'exposed_comm':
      return activities('kernels', kernel, "class = 'communication'", 'kernel');
    case 'exposed_copy':
      return activities('copies', { copy: copyGroups.kind }, `${copyGroups.kind} = ${literal(tail)}`, 'copy');
    case 'device_dependency':
      return group.level === 'inner'
        ? `${gaps(head)} UNION ALL SELECT 'earlier: ' || kernel, sum(n) / ${instances}, sum(ns) / 1e6 / ${instances}
     FROM (${asStatement(activitiesInside('kernels', kernel))}) ${of} WHERE earlier GROUP BY 1`
        : gaps(head);
    case 'launch_latency':
    case 'launch_overhead':
    case 'synchronization':
    case 'unattributed':
      return gaps(head);
    case 'host':
      if (tail === 'start_up' || tail === 'shut_down') {
        return `SELECT stage_id::VARCHAR AS what, NULL::DOUBLE AS count, ${tail} / 1e6 / ${instances} AS ms FROM (${edgeSums({ source }, level.windows)}) ${of}`;
      }
      if (tail === 'loading_code') {
        return `SELECT call AS what, NULL::DOUBLE AS count, sum(ns) / 1e6 / ${instances} AS ms FROM (${loadingSql(loadingCalls)}) ${of} GROUP BY 1`;
      }
      if (tail === 'program') return gaps('host');
      return gaps(
        tail === 'framework' ? 'host * coalesce(share, 0)' : 'host * (1 - coalesce(share, 0))',
        `LEFT JOIN (${frameworkShareSql(unmarked)}) USING (stage_id)`,
      );
    default:
      return null;
  }
}
