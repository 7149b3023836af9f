import type { OpClass } from '../../model/classes.js';
import type { PhaseClasses, PhaseKind, TracePhase } from '../../model/documents/trace.js';
import { instancesOf } from './kernels.js';
import { phaseOrder } from './phases.js';
import type { TraceScope } from './scope.js';

interface ClassRow {
  phase: PhaseKind;
  class: OpClass;
  count: number;
  total_ns: number;
  exclusive_ns: number;
}

/** Self time of operators, for a program without a GPU. */
const operatorClasses = `SELECT phase, coalesce(class, 'other') AS class, count(*)::BIGINT AS count,
    sum(coalesce(self_dur_ns, dur_ns))::DOUBLE AS total_ns, sum(coalesce(self_dur_ns, dur_ns))::DOUBLE AS exclusive_ns
  FROM phase_ops WHERE op_type IS DISTINCT FROM 'python_function' GROUP BY 1, 2`;

/** Time of kernels (without a GPU: operators) by class, for the whole capture and each phase. */
export async function readClasses(scope: TraceScope, phases: readonly TracePhase[]): Promise<PhaseClasses[]> {
  const { database, source } = scope;
  if (source.gpu_used) await scope.need('kernel_cells');
  const rows = await database.query<ClassRow>(
    !source.gpu_used
      ? operatorClasses
      : `SELECT phase, coalesce(class, 'other') AS class, sum(kernels)::BIGINT AS count, sum(dur_ns)::DOUBLE AS total_ns,
            coalesce(sum(exclusive_ns), 0)::DOUBLE AS exclusive_ns FROM kernel_cells GROUP BY 1, 2`,
  );
  const kinds = [...new Set(rows.map(({ phase }) => phase))].toSorted(
    (a, b) => phaseOrder.indexOf(a) - phaseOrder.indexOf(b),
  );
  return [null, ...kinds].map((kind) => {
    const phaseRows = kind === null ? sumByClass(rows) : rows.filter(({ phase }) => phase === kind);
    const total = phaseRows.reduce((sum, row) => sum + row.total_ns, 0);
    const instances = instancesOf(phases, kind);
    return {
      kind,
      instances,
      rows: phaseRows
        .map(({ class: opClass, count, total_ns, exclusive_ns }) => ({
          class: opClass,
          count,
          total_ns,
          exclusive_ns,
          share: total > 0 ? total_ns / total : 0,
          per_instance: count / instances,
          per_instance_ns: total_ns / instances,
        }))
        .toSorted((a, b) => b.total_ns - a.total_ns),
    };
  });
}

function sumByClass(rows: readonly ClassRow[]): ClassRow[] {
  const sums = new Map<OpClass, ClassRow>();
  for (const row of rows) {
    const sum = sums.get(row.class) ?? { ...row, count: 0, total_ns: 0, exclusive_ns: 0 };
    sum.count += row.count;
    sum.total_ns += row.total_ns;
    sum.exclusive_ns += row.exclusive_ns;
    sums.set(row.class, sum);
  }
  return [...sums.values()];
}
