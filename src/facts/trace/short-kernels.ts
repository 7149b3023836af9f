import type { PhaseKind, ShortKernels } from '../../model/documents/trace.js';
import { phaseOrder } from './phases.js';
import type { TraceScope } from './scope.js';
import { byPhaseSql } from './step-places.js';

/** A shorter kernel takes no longer than the next launch (5 to 10 µs on current hosts). */
export const shortKernelNs = 10_000;

/** Share of kernels, and of their time, that are too short to hide a launch. */
export async function readShortKernels(scope: TraceScope): Promise<ShortKernels> {
  const { database } = scope;
  await scope.need('kernel_cells');
  const rows = await database.query<{
    /** Null for the whole capture. */
    phase: PhaseKind | null;
    kernels: number;
    short: number;
    short_ns: number;
    total_ns: number;
  }>(
    `SELECT phase, sum(kernels)::BIGINT AS kernels, sum(short)::BIGINT AS short, sum(short_ns)::DOUBLE AS short_ns, sum(dur_ns)::DOUBLE AS total_ns
     FROM ${byPhaseSql('kernel_cells', { capture: true })} GROUP BY phase`,
  );
  const order = ({ phase }: (typeof rows)[number]) => (phase === null ? -1 : phaseOrder.indexOf(phase));
  return {
    threshold_ns: shortKernelNs,
    phases: rows
      .toSorted((a, b) => order(a) - order(b))
      .map((row) => ({
        kind: row.phase,
        kernels: row.kernels,
        short: row.short,
        count_share: row.kernels > 0 ? row.short / row.kernels : 0,
        time_share: row.total_ns > 0 ? row.short_ns / row.total_ns : 0,
      })),
  };
}
