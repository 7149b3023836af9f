import type { PhaseKind, Spread } from '../../model/documents/trace.js';
import type { OpClass } from '../../model/classes.js';
import type { TraceScope } from './scope.js';
import { queryDurations, spreadColumns, spreadOf } from './spread.js';

/** Durations of all kernels of one name. */
export interface KernelDurations extends Spread {
  /** Linear (type 7), ns. */
  p95_ns: number;
  /** Of equal width from the shortest to the longest; one where all take the same time. */
  bins: { from_ns: number; to_ns: number; count: number }[];
  /** The first of the longest, ns since the session's start. */
  longest: { start_ns: number; end_ns: number };
}

const binsShown = 40;

/** @returns null where the scope has no kernel of the name */
export async function kernelDurations(
  { database, need }: TraceScope,
  name: string,
): Promise<KernelDurations | null> {
  await need('own_kernels');
  const own = `own_kernels WHERE coalesce(name, short_name, '') = $1`;
  const [row] = await queryDurations<{ p95_ns: number; start_ns: number }>(
    { query: (sql) => database.query(sql, [name]) },
    (type) =>
      `SELECT ${spreadColumns('dur_ns', '', type)}, quantile_cont(dur_ns, 0.95)::DOUBLE AS p95_ns, arg_max(start_ns, (dur_ns, -start_ns)) AS start_ns FROM ${own}`,
  );
  const spread = row ? spreadOf(row) : null;
  if (!row || !spread) return null;
  const { min_ns: from, max_ns: to } = spread;
  const count = Math.min(binsShown, Math.max(1, to - from));
  const width = (to - from) / count;
  const counted = await database.query<{ bin: number; count: number }>(
    `SELECT least(${count - 1}, floor((dur_ns - ${from}) / ${Math.max(width, 1e-9)}))::INTEGER AS bin, count(*) AS count FROM ${own} GROUP BY 1`,
    [name],
  );
  const counts = new Map(counted.map((one) => [one.bin, one.count]));
  return {
    ...spread,
    p95_ns: row.p95_ns,
    bins: Array.from({ length: count }, (_, bin) => ({
      from_ns: from + bin * width,
      to_ns: from + (bin + 1) * width,
      count: counts.get(bin) ?? 0,
    })),
    longest: { start_ns: row.start_ns, end_ns: row.start_ns + to },
  };
}

/** Kernels of one name that one operator launched in one phase. */
export interface KernelOrigin {
  phase: PhaseKind;
  /** Null where no operator was recorded. */
  operator: string | null;
  kernel: string;
  class: OpClass | null;
  count: number;
  total_ns: number;
}

/** Kernel time by phase, launching operator and name; its sum is that of all kernels of the scope. */
export async function kernelOrigins({ database, need }: TraceScope): Promise<KernelOrigin[]> {
  await need('focus_kernels', 'own_ops');
  return database.query<KernelOrigin>(
    `SELECT k.phase, o.name AS operator, coalesce(k.name, k.short_name, '') AS kernel, arg_max(k.class, k.dur_ns) AS class,
            count(*) AS count, sum(k.dur_ns)::DOUBLE AS total_ns
     FROM focus_kernels k LEFT JOIN own_ops o ON o.op_id = k.op_id
     GROUP BY 1, 2, 3 ORDER BY total_ns DESC, 1, 2, 3`,
  );
}
