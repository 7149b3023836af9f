import type { Overlap } from '../../model/documents/trace.js';
import type { TraceScope } from './scope.js';

/** Less of the kernel time than this beside other kernels is none: the ends of one stream touch the next. */
const hardlyAny = 0.01;

/**
 * What ran at the same time. exclusive_ns counts each instant once, compute before communication before copies
 * (docs/measurement.md), so the difference from the plain durations is what was hidden. Needs `kernel_cells`.
 */
export async function overlap({ database }: TraceScope): Promise<Overlap> {
  const streams = await database.query<Overlap['streams'][number]>(
    `SELECT context, stream, sum(kernels)::BIGINT AS kernels, coalesce(sum(kernel_ns), 0)::DOUBLE AS kernel_ns, sum(copies)::BIGINT AS copies,
            coalesce(sum(copy_ns), 0)::DOUBLE AS copy_ns, min(start_ns) AS start_ns, max(end_ns) AS end_ns
     FROM (SELECT context, stream, kernels, dur_ns AS kernel_ns, 0 AS copies, 0 AS copy_ns, start_ns, end_ns FROM kernel_cells
           UNION ALL
           SELECT context, stream, 0, 0, count(*), sum(dur_ns), min(start_ns), max(start_ns + dur_ns) FROM own_copies GROUP BY 1, 2)
     GROUP BY context, stream ORDER BY kernel_ns DESC, copy_ns DESC, stream`,
  );
  const kernels = await database.query<{ comm: boolean; dur: number; alone: number }>(
    `SELECT coalesce(class = 'communication', false) AS comm, sum(dur_ns)::DOUBLE AS dur,
            coalesce(sum(exclusive_ns), sum(dur_ns))::DOUBLE AS alone
     FROM kernel_cells GROUP BY 1`,
  );
  const [copies] = await database.query<{ dur: number | null; alone: number | null }>(
    `SELECT sum(dur_ns)::DOUBLE AS dur, coalesce(sum(exclusive_ns), sum(dur_ns))::DOUBLE AS alone FROM own_copies`,
  );
  const compute = kernels.find(({ comm }) => !comm) ?? { dur: 0, alone: 0 };
  const comm = kernels.find(({ comm }) => comm) ?? { dur: 0, alone: 0 };
  const beside = Math.max(0, compute.dur - compute.alone);
  const withKernels = streams.filter(({ kernels: own }) => own > 0);
  const serialised = withKernels.length > 1 && beside + (comm.dur - comm.alone) < hardlyAny * compute.dur;
  const percent = (part: number, whole: number) => Math.round((100 * part) / Math.max(1, whole));
  const texts = [
    withKernels.length === 1
      ? 'All kernels ran on one stream.'
      : serialised
        ? `Kernels ran on ${withKernels.length} streams, but one after the other: the streams gained no concurrency.`
        : `Kernels ran on ${withKernels.length} streams; ${percent(beside, compute.dur)} % of compute time was beside another kernel.`,
  ];
  if (comm.dur > 0) {
    texts.push(
      `${percent(comm.dur - comm.alone, comm.dur)} % of communication was hidden behind computation.`,
    );
  }
  const copyNs = copies?.dur ?? 0;
  if (copyNs > 0) {
    texts.push(`${percent(copyNs - (copies?.alone ?? 0), copyNs)} % of copy time was hidden behind kernels.`);
  }
  return {
    streams,
    compute_ns: compute.dur,
    compute_beside_compute_ns: beside,
    comm_ns: comm.dur,
    comm_hidden_ns: Math.max(0, comm.dur - comm.alone),
    copy_ns: copyNs,
    copy_hidden_ns: Math.max(0, copyNs - (copies?.alone ?? 0)),
    serialised,
    text: texts.join(' '),
  };
}
