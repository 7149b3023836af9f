import type { PhaseKind, Spread } from '../../model/documents/trace.js';
import type { OpClass } from '../../model/classes.js';
import type { TraceScope } from './scope.js';
import { kernelLooks } from './kernels.js';
import { queryDurations, spreadColumns, spreadOf } from './spread.js';

/** Kernels of one name: what they are and how long they take. */
export interface NamedKernel extends Spread {
  name: string;
  short_name: string;
  class: OpClass;
  /** Share of the time of all kernels, 0 to 1. */
  share: number;
  /** Linear (type 7), ns. */
  p95_ns: number;
  /** Counts in bins of equal width from the shortest to the longest; one bin where all take the same time. */
  bins: number[];
  /** The first of the longest, ns since the session's start. */
  longest: { start_ns: number; end_ns: number };
}

const binsShown = 40;

/** All names of kernels with their durations, those with the most time first. */
export async function namedKernels(scope: TraceScope): Promise<NamedKernel[]> {
  const { database } = scope;
  await scope.need('own_kernels', 'kernel_cells');
  const looks = new Map((await kernelLooks(database)).map((one) => [one.name, one]));
  const own = `(SELECT coalesce(name, short_name, '') AS name, dur_ns, start_ns FROM own_kernels)`;
  const rows = await queryDurations<{ name: string; p95_ns: number; start_ns: number }>(
    database,
    (type) =>
      `SELECT name, ${spreadColumns('dur_ns', '', type)}, quantile_cont(dur_ns, 0.95)::DOUBLE AS p95_ns, arg_max(start_ns, (dur_ns, -start_ns)) AS start_ns
       FROM ${own} GROUP BY name ORDER BY total_ns DESC, name`,
  );
  const counted = await database.query<{ name: string; bin: number; count: number }>(
    `SELECT name, least(n - 1, floor((dur_ns - low) / greatest((high - low) / n, 1e-9)))::INTEGER AS bin, count(*) AS count
     FROM ${own} JOIN (SELECT name, min(dur_ns) AS low, max(dur_ns) AS high, least(${binsShown}, greatest(1, max(dur_ns) - min(dur_ns))) AS n FROM ${own} GROUP BY name) USING (name)
     GROUP BY 1, 2`,
  );
  const bins = new Map<string, { bin: number; count: number }[]>();
  for (const { name, ...one } of counted) {
    const known = bins.get(name);
    if (known) known.push(one);
    else bins.set(name, [one]);
  }
  const found = rows.flatMap((row) => {
    const spread = spreadOf(row);
    return spread ? [{ row, spread }] : [];
  });
  const total = found.reduce((sum, { spread }) => sum + spread.total_ns, 0);
  return found.map(({ row: { name, p95_ns, start_ns }, spread }): NamedKernel => {
    const length = Math.min(binsShown, Math.max(1, spread.max_ns - spread.min_ns));
    const counts = Array.from({ length }, () => 0);
    for (const { bin, count } of bins.get(name) ?? []) counts[bin] = count;
    const look = looks.get(name);
    return {
      ...spread,
      name,
      short_name: look?.short_name ?? name,
      class: look?.class ?? 'other',
      share: total > 0 ? spread.total_ns / total : 0,
      p95_ns,
      bins: counts,
      longest: { start_ns, end_ns: start_ns + spread.max_ns },
    };
  });
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
