import type { PhaseKind, TraceSource } from '../../model/documents/trace.js';
import { literal } from '../trace/scope.js';
import type { PhaseClock } from '../trace/windows.js';
import { frameworkShareSql } from './host-split.js';
import { standaloneSql } from './standalone.js';
import { activitiesOfWindows, copyGroups, edgeSums } from './window-sums.js';

export interface BarSqlContext {
  source: TraceSource;
  clocks: readonly PhaseClock[];
  kind: PhaseKind;
  instances: number;
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
  return standaloneSql(`${rows}${constants.join('')} ORDER BY 3 DESC`, context.source, context.clocks);
}

function rowsOf(id: string, { source, clocks, kind, instances }: BarSqlContext): string | null {
  const unmarked = clocks.some((clock) => clock.kind === 'outside');
  const [head = '', tail = ''] = id.split('.');
  const of = `JOIN windows USING (stage_id) WHERE windows.kind = ${literal(kind)}`;
  const activities = (table: string, groups: Record<string, string>, label: string) =>
    `SELECT ${label} AS what, sum(n) / ${instances} AS count, sum(ns) / 1e6 / ${instances} AS ms
     FROM (${activitiesOfWindows(table, groups, unmarked)}) ${of} GROUP BY 1`;
  const gaps = (expression: string, more = '') =>
    `SELECT stage_id::VARCHAR AS what, NULL::DOUBLE AS count, sum(${expression}) / 1e6 / ${instances} AS ms FROM window_gaps ${more} ${of} GROUP BY 1`;
  switch (head) {
    case 'inefficiency':
    case 'nonessential':
    case 'kernels':
      return activities(
        `(SELECT * FROM own_kernels WHERE coalesce(class, 'other') = ${literal(tail)})`,
        { kernel: "coalesce(short_name, name, '?')" },
        'kernel',
      );
    case 'exposed_comm':
      return activities(
        "(SELECT * FROM own_kernels WHERE class = 'communication')",
        { kernel: "coalesce(short_name, name, '?')" },
        'kernel',
      );
    case 'exposed_copy':
      return activities(
        `(SELECT * FROM own_copies WHERE ${copyGroups.kind} = ${literal(tail)})`,
        { copy: copyGroups.kind },
        'copy',
      );
    case 'launch_latency':
    case 'launch_overhead':
    case 'synchronization':
    case 'device_dependency':
    case 'unattributed':
      return gaps(head);
    case 'host':
      if (tail === 'start_up' || tail === 'shut_down') {
        return `SELECT stage_id::VARCHAR AS what, NULL::DOUBLE AS count, ${tail} / 1e6 / ${instances} AS ms FROM (${edgeSums({ source })}) ${of}`;
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
