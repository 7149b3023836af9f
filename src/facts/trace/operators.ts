import type { Operator, Operators, TracePhase } from '../../model/documents/trace.js';
import { phaseFilter } from './kernels.js';
import { readCallNames } from './call-names.js';
import { literal, type TraceScope } from './scope.js';
import { isAllocatorCall } from '../../model/synchronizing-calls.js';
import { formatNs, formatPercent } from '../../vocabulary/format.js';
import { capitalize } from '../../vocabulary/sentence.js';

const maxRows = 60;
const maxShapes = 4;
const pathDepth = 12;

interface OperatorRow {
  name: string;
  op_type: string | null;
  count: number;
  cpu_ns: number;
  self_cpu_ns: number;
  device_ns: number;
  kernels: number;
  allocated_bytes: number | null;
  /** Time in API calls, including allocator calls. Driver calls inside runtime calls count once. */
  called_ns: number;
  allocation_ns: number;
  sample_op_id: number;
}

/**
 * Operators of one phase (the first recorded of decode, mixed and prefill, else the whole capture): host time with and without the operators and API
 * calls inside them, time of kernels and copies that they launched directly, shapes, allocations, and the largest cost
 * of each. Null without operators.
 *
 * Verdict of an operator by its largest cost: `allocation` for allocator calls, `kernels` for device time, `scheduling`
 * for host time around them.
 */
export async function readOperators(
  scope: TraceScope,
  phases: readonly TracePhase[],
): Promise<Operators | null> {
  const { database, source } = scope;
  const [operators] = await database.query<{ n: number }>(
    `SELECT count(*) AS n FROM phase_ops WHERE op_type IS DISTINCT FROM 'python_function'`,
  );
  if (!operators?.n) return null;
  const phase = (['decode', 'mixed', 'prefill'] as const).find((kind) =>
    phases.some((phase) => phase.kind === kind),
  );
  await makeOpCosts(scope, phaseFilter(phase ?? null));
  const rows = await database.query<OperatorRow>(
    `SELECT name, any_value(op_type) AS op_type, sum(count)::BIGINT AS count, sum(cpu_ns)::DOUBLE AS cpu_ns, sum(self_ns)::DOUBLE AS self_cpu_ns,
            sum(device_ns)::DOUBLE AS device_ns, sum(kernels)::BIGINT AS kernels, sum(allocated_bytes)::DOUBLE AS allocated_bytes,
            sum(called_ns)::DOUBLE AS called_ns, sum(allocation_ns)::DOUBLE AS allocation_ns, arg_max(sample_op_id, sample_ns) AS sample_op_id
     FROM op_costs GROUP BY name ORDER BY sum(device_ns) + sum(self_ns) DESC, name LIMIT ${maxRows}`,
  );
  const shapes = await database.query<{
    name: string;
    input_shapes: string;
    count: number;
    device_ns: number;
  }>(
    `SELECT name, input_shapes, count, device_ns::DOUBLE AS device_ns FROM op_costs
     WHERE input_shapes IS NOT NULL
     QUALIFY row_number() OVER (PARTITION BY name ORDER BY count DESC, device_ns DESC, input_shapes) <= ${maxShapes}
     ORDER BY name, count DESC, input_shapes`,
  );
  const paths = await readCallPaths(
    database,
    rows.map((row) => row.sample_op_id),
  );
  const shownOperators = rows.map(({ sample_op_id, called_ns, ...row }): Operator => ({
    ...row,
    shapes: shapes
      .filter(({ name }) => name === row.name)
      .map(({ input_shapes, count, device_ns }) => ({ input_shapes, count, device_ns })),
    call_path: paths.get(sample_op_id) ?? [],
    verdict: source.gpu_used ? verdictOf({ ...row, called_ns }) : ('cpu' as const),
  }));
  const [all] = await database.query<Costs>(
    `SELECT coalesce(sum(self_ns), 0)::DOUBLE AS self_cpu_ns, coalesce(sum(device_ns), 0)::DOUBLE AS device_ns,
            coalesce(sum(called_ns), 0)::DOUBLE AS called_ns, coalesce(sum(allocation_ns), 0)::DOUBLE AS allocation_ns FROM op_costs`,
  );
  const table = { phase: phase ?? null, rows: shownOperators, self_cpu_total_ns: all?.self_cpu_ns ?? 0 };
  if (!source.gpu_used && all)
    return {
      ...table,
      verdict: 'cpu',
      text: cpuText(shownOperators, all.self_cpu_ns, phase ?? null),
    };
  const verdict = all && shownOperators.length > 0 ? verdictOf(all) : null;
  return { ...table, verdict, text: all && verdict ? verdictText(verdict, all) : '' };
}

/**
 * Makes `op_costs`: host, device and call time by operator name and input shapes. One query groups all calls, because a
 * table with a row per call would be as large as the file.
 */
async function makeOpCosts(scope: TraceScope, filter: string): Promise<void> {
  // The caching allocator makes these calls when it has no free block.
  const allocators = (await readCallNames(scope)).filter(isAllocatorCall).map(literal);
  const isAllocation = `name IN (${allocators.join(', ') || 'NULL'})`;
  await scope.database.query(
    `CREATE TEMP TABLE op_costs AS
     WITH launched AS (
       SELECT op_id, sum(dur_ns) AS device_ns, sum(kernels) AS kernels FROM (
         SELECT op_id, dur_ns, 1 AS kernels FROM phase_kernels WHERE op_id IS NOT NULL
         UNION ALL SELECT op_id, dur_ns, 0 FROM phase_copies WHERE op_id IS NOT NULL) GROUP BY op_id),
     called AS (
       SELECT op_id, coalesce(sum(dur_ns) FILTER (api = 'runtime'), sum(dur_ns)) AS called_ns, coalesce(sum(dur_ns) FILTER (api = 'runtime' AND ${isAllocation}), sum(dur_ns) FILTER (${isAllocation}), 0) AS allocation_ns
       FROM phase_api WHERE op_id IS NOT NULL GROUP BY op_id),
     calls AS (
       SELECT o.op_id, o.name, o.op_type, o.input_shapes, o.dur_ns, coalesce(o.self_dur_ns, o.dur_ns) AS self_ns,
              coalesce(l.device_ns, 0) AS device_ns, coalesce(l.kernels, 0) AS kernels, o.allocated_bytes, coalesce(a.called_ns, 0) AS called_ns, coalesce(a.allocation_ns, 0) AS allocation_ns
       FROM (SELECT * FROM phase_ops WHERE ${filter} AND op_type IS DISTINCT FROM 'python_function') o
       LEFT JOIN launched l USING (op_id) LEFT JOIN called a USING (op_id))
     SELECT name, input_shapes, any_value(op_type) AS op_type, count(*) AS count, sum(dur_ns) AS cpu_ns, sum(self_ns) AS self_ns,
            sum(device_ns) AS device_ns, sum(kernels) AS kernels, sum(allocated_bytes) AS allocated_bytes, sum(called_ns) AS called_ns, sum(allocation_ns) AS allocation_ns,
            arg_max(op_id, self_ns + device_ns) AS sample_op_id, max(self_ns + device_ns) AS sample_ns
     FROM calls GROUP BY name, input_shapes`,
  );
}

/** Without a GPU an operator's self time is its computation. */
function cpuText(rows: readonly Operator[], total: number, phase: string | null): string {
  const largest = rows
    .slice(0, 3)
    .map(({ name, self_cpu_ns }) => `${name} ${formatPercent(total > 0 ? self_cpu_ns / total : 0)}`);
  const where = phase === null ? '' : ` of ${phase}`;
  return `The operators${where} take ${formatNs(total)} of CPU self time: ${largest.join(', ')}.`;
}

type Costs = Pick<OperatorRow, 'self_cpu_ns' | 'device_ns' | 'called_ns' | 'allocation_ns'>;

/** Host time in and around calls, without allocator calls. */
const schedulingOf = ({ self_cpu_ns, called_ns, allocation_ns }: Costs): number =>
  self_cpu_ns + Math.max(0, called_ns - allocation_ns);

function verdictOf(costs: Costs): Exclude<Operator['verdict'], 'cpu'> {
  const { device_ns, allocation_ns } = costs;
  const scheduling = schedulingOf(costs);
  if (allocation_ns > Math.max(scheduling, device_ns)) return 'allocation';
  return device_ns >= scheduling ? 'kernels' : 'scheduling';
}

function verdictText(verdict: Exclude<Operator['verdict'], 'cpu'>, costs: Costs): string {
  const { device_ns, allocation_ns } = costs;
  const scheduling = schedulingOf(costs);
  const sum = scheduling + device_ns + allocation_ns;
  const parts = `host ${formatPercent(scheduling / sum)}, kernels ${formatPercent(device_ns / sum)}, allocation ${formatPercent(allocation_ns / sum)}`;
  const words = {
    scheduling: 'host work around the operators takes longer than their kernels',
    kernels: 'kernels of the operators take longer than the host work around them',
    allocation: 'allocator calls take longer than the operators and their kernels',
  }[verdict];
  return `${capitalize(words)} (${parts}).`;
}

/** Enclosing operators and Python frames of some calls, outermost first. Reads the file once per level. */
async function readCallPaths(
  database: TraceScope['database'],
  ids: number[],
): Promise<Map<number, string[]>> {
  const paths = new Map<number, string[]>();
  let pending = new Map<number, number>();
  for (const id of ids) if (Number.isSafeInteger(id)) pending.set(id, id);
  for (let depth = 0; depth <= pathDepth && pending.size > 0; depth++) {
    const ops = await database.query<{ op_id: number; parent_op_id: number | null; name: string }>(
      `SELECT op_id, parent_op_id, name FROM rank_ops WHERE op_id IN (${[...new Set(pending.values())].join(', ')})`,
    );
    const opsById = new Map(ops.map((op) => [op.op_id, op]));
    const next = new Map<number, number>();
    for (const [root, currentId] of pending) {
      const op = opsById.get(currentId);
      if (!op) continue;
      if (currentId !== root) paths.set(root, [op.name, ...(paths.get(root) ?? [])]);
      if (op.parent_op_id !== null) next.set(root, op.parent_op_id);
    }
    pending = next;
  }
  return paths;
}
