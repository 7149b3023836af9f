import type { OpClass } from '../../model/classes.js';
import type { PhaseClasses, PhaseKind, TracePhase } from '../../model/documents/trace.js';
import { instancesOf } from './kernels.js';
import { phaseOrder } from './phases.js';
import { byPhaseSql } from './step-places.js';
import type { TraceScope } from './scope.js';

interface ClassRow {
  /** Null for the whole capture. */
  phase: PhaseKind | null;
  class: OpClass;
  count: number;
  total_ns: number;
  exclusive_ns: number;
}

/** Self time of operators, for a program without a GPU. */
const operatorClasses = `SELECT phase, coalesce(class, 'other') AS class, count(*)::BIGINT AS count,
    sum(coalesce(self_dur_ns, dur_ns))::DOUBLE AS total_ns, sum(coalesce(self_dur_ns, dur_ns))::DOUBLE AS exclusive_ns
  FROM ${byPhaseSql('phase_ops', { capture: true })} WHERE op_type IS DISTINCT FROM 'python_function' GROUP BY 1, 2`;

/** Time of kernels (without a GPU: operators) by class, for the whole capture and each phase. */
export async function readClasses(scope: TraceScope, phases: readonly TracePhase[]): Promise<PhaseClasses[]> {
  const { database, source } = scope;
  if (source.gpu_used) await scope.need('kernel_cells');
  const rows = await database.query<ClassRow>(
    !source.gpu_used
      ? operatorClasses
      : `SELECT phase, coalesce(class, 'other') AS class, sum(kernels)::BIGINT AS count, sum(dur_ns)::DOUBLE AS total_ns,
            coalesce(sum(exclusive_ns), 0)::DOUBLE AS exclusive_ns FROM ${byPhaseSql('kernel_cells', { capture: true })} GROUP BY 1, 2`,
  );
  const kinds = [null, ...phaseOrder.filter((kind) => rows.some(({ phase }) => phase === kind))];
  return kinds.map((kind) => {
    const phaseRows = rows.filter(({ phase }) => phase === kind);
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
