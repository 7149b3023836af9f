import type { Overlap } from '../../model/documents/trace.js';
import type { TraceScope } from './scope.js';

/** Minimum share of kernel time that overlaps. Kernels of one stream may touch at their ends. */
const minOverlapShare = 0.01;

/**
 * Activities that ran at the same time. exclusive_ns counts each instant once: compute before communication before
 * copies (docs/concepts/stages-and-clocks.md). Hidden communication is the time with any communication minus its
 * exclusive time, so two concurrent collectives do not hide each other. The same holds for copies behind kernels.
 */
export async function readOverlap(scope: TraceScope): Promise<Overlap> {
  const { database } = scope;
  await scope.need('kernel_cells');
  const streams = await database.query<Overlap['streams'][number]>(
    `SELECT context, stream, sum(kernels)::BIGINT AS kernels, coalesce(sum(kernel_ns), 0)::DOUBLE AS kernel_ns, sum(copies)::BIGINT AS copies,
            coalesce(sum(copy_ns), 0)::DOUBLE AS copy_ns, min(start_ns) AS start_ns, max(end_ns) AS end_ns
     FROM (SELECT context, stream, kernels, dur_ns AS kernel_ns, 0 AS copies, 0 AS copy_ns, start_ns, end_ns FROM kernel_cells
           UNION ALL
           SELECT context, stream, 0, 0, count(*), sum(dur_ns), min(start_ns), max(start_ns + dur_ns) FROM rank_copies GROUP BY 1, 2)
     GROUP BY context, stream ORDER BY kernel_ns DESC, copy_ns DESC, stream`,
  );
  const kernels = await database.query<{ comm: boolean; dur: number; alone: number }>(
    `SELECT coalesce(class = 'communication', false) AS comm, sum(dur_ns)::DOUBLE AS dur,
            coalesce(sum(exclusive_ns), sum(dur_ns))::DOUBLE AS alone
     FROM kernel_cells GROUP BY 1`,
  );
  const [copies] = await database.query<{ alone: number | null }>(
    'SELECT coalesce(sum(exclusive_ns), sum(dur_ns))::DOUBLE AS alone FROM rank_copies',
  );
  const compute = kernels.find(({ comm }) => !comm) ?? { dur: 0, alone: 0 };
  const comm = kernels.find(({ comm }) => comm) ?? { dur: 0, alone: 0 };
  const computeOverlap = Math.max(0, compute.dur - compute.alone);
  const commNs =
    comm.dur > 0 ? await readUnionTime(database, "rank_kernels WHERE class = 'communication'") : 0;
  const copyNs = await readUnionTime(database, 'rank_copies');
  const hiddenComm = Math.max(0, commNs - comm.alone);
  const hiddenCopies = Math.max(0, copyNs - (copies?.alone ?? 0));
  const withKernels = streams.filter(({ kernels: kernelCount }) => kernelCount > 0);
  const serialized =
    withKernels.length > 1 && computeOverlap + (comm.dur - comm.alone) < minOverlapShare * compute.dur;
  return {
    streams,
    compute_ns: compute.dur,
    compute_overlap_ns: computeOverlap,
    comm_ns: commNs,
    comm_hidden_ns: hiddenComm,
    copy_ns: copyNs,
    copy_hidden_ns: hiddenCopies,
    serialized,
  };
}

/** Time in which at least one of the activities ran. */
async function readUnionTime(database: TraceScope['database'], activities: string): Promise<number> {
  const [row] = await database.query<{ ns: number }>(
    `SELECT coalesce(sum(greatest(0, end_ns - greatest(start_ns, covered_until_ns))), 0)::DOUBLE AS ns FROM (
       SELECT start_ns, end_ns, coalesce(max(end_ns) OVER (ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), start_ns) AS covered_until_ns
       FROM (SELECT start_ns, start_ns + dur_ns AS end_ns FROM ${activities}))`,
  );
  return row!.ns;
}
