import { barParts } from '../../model/bars.js';
import { literal } from '../trace/scope.js';
import type { StageGroup } from './stage-group.js';

interface BarSqlContext {
  group: StageGroup;
  instances: number;
  /** Rows that are computed, not recorded, ms per mean instance: roofline limits, profiler overhead. */
  constants: { label: string; ms: number }[];
}

/**
 * The query behind a bar, for `inferscope sql --session ID`. Column `ms` is per mean instance and sums to the bar.
 * @returns null for bars without recorded rows
 */
export function barSql(id: string, context: BarSqlContext): string | null {
  const rows = rowsOf(id, context);
  if (rows === null) return null;
  const constants = context.constants.map(
    ({ label, ms }) => `\nUNION ALL SELECT ${literal(label)}, NULL, ${ms}`,
  );
  return `${rows}${constants.join('')}\nORDER BY 3 DESC`;
}

function rowsOf(id: string, { group, instances }: BarSqlContext): string | null {
  const { head, tail } = barParts(id);
  const inner = group.level === 'inner';
  const sums = inner ? 'inner' : 'window';
  const groupRows = (where?: string) =>
    `JOIN members USING (stage_id) WHERE grp = ${literal(group.key)}${where === undefined ? '' : ` AND ${where}`} GROUP BY 1`;
  const rows = (
    label: string,
    ns: string,
    from: string,
    { where, n = 'NULL::DOUBLE' }: { where?: string; n?: string } = {},
  ) =>
    `SELECT ${label} AS what, ${n} AS count, sum(${ns}) / 1e6 / ${instances} AS ms\nFROM ${from} ${groupRows(where)}`;
  const kernels = (className: string) =>
    rows('kernel', 'ns', `${sums}_kernel_names`, {
      where: `class = ${literal(className)}${inner ? ' AND NOT earlier' : ''}`,
      n: `sum(n) / ${instances}`,
    });
  const idle = (ns: string, from = `${sums}_idle`) => rows('stage_id::VARCHAR', ns, from);
  switch (head) {
    case 'inefficiency':
    case 'nonessential':
    case 'kernels':
      return kernels(tail);
    case 'exposed_comm':
      // The parts are shares of the kernels' time.
      return tail !== '' ? null : kernels('communication');
    case 'exposed_copy':
      return rows('kind', 'ns', `${sums}_copies`, {
        where: `kind = ${literal(tail)}`,
        n: `sum(n) / ${instances}`,
      });
    case 'device_dependency':
      return inner
        ? `${idle(head, 'inner_gaps')}\nUNION ALL ${rows("'earlier: ' || kernel", 'ns', 'inner_kernel_names', { where: 'earlier', n: `sum(n) / ${instances}` })}`
        : idle(head);
    case 'launch_latency':
    case 'launch_overhead':
    case 'synchronization':
    case 'unattributed':
      return idle(head);
    case 'host':
      if (tail === 'start_up' || tail === 'shut_down') return idle(tail);
      if (tail === 'loading_code') return rows('call', 'ns', 'loading_calls');
      if (tail === 'program') return idle('host');
      return rows(
        'stage_id::VARCHAR',
        tail === 'framework' ? 'host * coalesce(share, 0)' : 'host * (1 - coalesce(share, 0))',
        `${sums}_idle LEFT JOIN (SELECT step_id AS stage_id, sum(inside_ns) / nullif(sum(host_ns), 0) AS share FROM host_gaps GROUP BY 1) USING (stage_id)`,
      );
    default:
      return null;
  }
}
