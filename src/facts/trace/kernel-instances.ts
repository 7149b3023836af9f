import type { PhaseKind } from '../../model/documents/trace.js';
import type { OpClass } from '../../model/classes.js';
import { readKernelProperties } from './kernels.js';
import { type NamedDurations, readNamedDurations } from './named-durations.js';
import type { TraceScope } from './scope.js';
import { stepPhase } from './step-places.js';

/** Kernels of one name: class, launch properties and durations. */
export interface NamedKernel extends NamedDurations {
  short_name: string;
  /** Tile of a GEMM; null if the name does not show it. */
  tile: string | null;
  class: OpClass;
  /** Share of the time of all kernels, 0 to 1. */
  share: number;
}

/** All kernel names with durations, the most time first. */
export async function readNamedKernels(scope: TraceScope): Promise<NamedKernel[]> {
  const { database } = scope;
  await scope.need('rank_kernels', 'kernel_cells');
  const properties = new Map((await readKernelProperties(database)).map((row) => [row.name, row]));
  const durationsByName = await readNamedDurations(
    database,
    `(SELECT coalesce(name, short_name, '') AS name, dur_ns, start_ns FROM rank_kernels)`,
  );
  const total = durationsByName.reduce((sum, { total_ns }) => sum + total_ns, 0);
  return durationsByName.map((durations): NamedKernel => {
    const kernel = properties.get(durations.name);
    return {
      ...durations,
      short_name: kernel?.short_name ?? durations.name,
      tile: kernel?.tile ?? null,
      class: kernel?.class ?? 'other',
      share: total > 0 ? durations.total_ns / total : 0,
    };
  });
}

/** Kernels of one name that one operator launched in one phase. */
export interface KernelOrigin {
  phase: PhaseKind;
  /** Decoder layer of the operator; null outside the layers. */
  layer: number | null;
  /** Null if no operator was recorded. */
  operator: string | null;
  kernel: string;
  class: OpClass | null;
  count: number;
  total_ns: number;
}

/** Kernel time by phase, layer, launching operator and name. It sums to all kernels of the scope. */
export async function readKernelOrigins({ database, need }: TraceScope): Promise<KernelOrigin[]> {
  await need('phase_kernels', 'rank_ops');
  return database.query<KernelOrigin>(
    `SELECT ${stepPhase} AS phase, o.layer, o.name AS operator, coalesce(k.name, k.short_name, '') AS kernel, arg_max(k.class, k.dur_ns) AS class,
            count(*) AS count, sum(k.dur_ns)::DOUBLE AS total_ns
     FROM phase_kernels k LEFT JOIN rank_ops o ON o.op_id = k.op_id
     GROUP BY 1, 2, 3, 4 ORDER BY total_ns DESC, 1, 2, 3, 4`,
  );
}
