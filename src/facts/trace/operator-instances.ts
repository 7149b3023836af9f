import type { PhaseKind } from '../../model/documents/trace.js';
import type { OpClass } from '../../model/classes.js';
import { type NamedDurations, readNamedDurations } from './named-durations.js';
import type { TraceScope } from './scope.js';
import { stepPhase } from './step-places.js';

/** Operators of one name: calls, durations including callees, and the kernels they launch. */
export interface NamedOperator extends NamedDurations {
  class: OpClass;
  /** Host time without the operators and calls inside them, ns. */
  self_ns: number;
  /** Share of the self time of all operators, 0 to 1. */
  share: number;
  /** Kernels that the operators launched directly. */
  kernels: number;
  /** Time of those kernels, ns. */
  device_ns: number;
}

const selfNs = 'coalesce(o.self_dur_ns, o.dur_ns)';

/** All operator names with durations, the most time first. */
export async function readNamedOperators(scope: TraceScope): Promise<NamedOperator[]> {
  const { database } = scope;
  await scope.need('rank_ops', 'rank_kernels');
  const durations = await readNamedDurations(
    database,
    `(SELECT coalesce(name, '') AS name, dur_ns, start_ns FROM rank_ops)`,
  );
  const sums = await database.query<
    Pick<NamedOperator, 'name' | 'class' | 'self_ns' | 'kernels' | 'device_ns'>
  >(
    `SELECT coalesce(o.name, '') AS name, coalesce(arg_max(o.class, o.dur_ns), 'other') AS class, sum(${selfNs})::DOUBLE AS self_ns,
            coalesce(sum(k.kernels), 0)::DOUBLE AS kernels, coalesce(sum(k.device_ns), 0)::DOUBLE AS device_ns
     FROM rank_ops o LEFT JOIN (SELECT op_id, count(*) AS kernels, sum(dur_ns) AS device_ns FROM rank_kernels GROUP BY 1) k USING (op_id) GROUP BY 1`,
  );
  const byName = new Map(sums.map((total) => [total.name, total]));
  const totalSelfNs = sums.reduce((sum, { self_ns }) => sum + self_ns, 0);
  return durations.map((durations): NamedOperator => {
    const total = byName.get(durations.name)!;
    return { ...total, ...durations, share: totalSelfNs > 0 ? total.self_ns / totalSelfNs : 0 };
  });
}

/** Self time of operators of one name in one phase and layer. */
export interface OperatorOrigin {
  phase: PhaseKind;
  /** Null outside the layers. */
  layer: number | null;
  operator: string;
  class: OpClass | null;
  count: number;
  total_ns: number;
}

/** Self time by phase, layer and name. It sums to all operators of the scope. */
export async function readOperatorOrigins({ database, need }: TraceScope): Promise<OperatorOrigin[]> {
  await need('phase_ops');
  return database.query<OperatorOrigin>(
    `SELECT ${stepPhase} AS phase, o.layer, coalesce(o.name, '') AS operator, arg_max(o.class, o.dur_ns) AS class,
            count(*) AS count, sum(${selfNs})::DOUBLE AS total_ns
     FROM phase_ops o GROUP BY 1, 2, 3 ORDER BY total_ns DESC, 1, 2, 3`,
  );
}
