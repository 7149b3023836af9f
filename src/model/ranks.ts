import { z } from 'zod';

export const rankClockSchema = z.object({
  rank: z.number().int(),
  against: z
    .number()
    .int()
    .nullable()
    .describe('The rank that it was compared with; null: not aligned, the clock of its host.'),
  offset_ns: z
    .number()
    .nullable()
    .describe('Its clock minus that of the lowest rank, in the middle of the capture.'),
  drift_ppm: z.number().nullable(),
  bound_ns: z.number().nullable().describe('Largest error of a time after the correction.'),
  collectives: z.number().int().describe('Number of collectives with compared ends.'),
  window_ns: z
    .tuple([z.number(), z.number()])
    .optional()
    .describe("From its first to its last collective, ns since the session's start; absent without any."),
});

/** Outcome of each file of `import --ranks`, or of each rank of a job that `run` recorded; saved in the session as ranks.json. */
export const rankFilesSchema = z.object({
  world_size: z.number().int().nullable().describe('Ranks of the job, where a file states it.'),
  files: z.array(
    z.object({
      file: z.string(),
      outcome: z.enum(['imported', 'failed', 'skipped']),
      rank: z.number().int().nullable(),
      rank_source: z.enum(['trace', 'file name', 'order of files', 'launcher']).nullable(),
      reason: z.string().nullable(),
    }),
  ),
  clocks: z.array(rankClockSchema),
  missing: z.array(z.number().int()).describe('Ranks of the job without an imported file.'),
});

export type RankFiles = z.infer<typeof rankFilesSchema>;
export type RankClockFacts = z.infer<typeof rankClockSchema>;

/** Missing ranks of a job. */
export const missingRanks = (worldSize: number, isThere: (rank: number) => boolean): number[] =>
  Array.from({ length: worldSize }, (_, rank) => rank).filter((rank) => !isThere(rank));

/** "0-3, 8" */
export function rankRanges(ranks: readonly number[]): string {
  const sorted = [...new Set(ranks)].toSorted((a, b) => a - b);
  const ranges: [first: number, last: number][] = [];
  for (const rank of sorted) {
    const last = ranges.at(-1);
    if (last && rank === last[1] + 1) last[1] = rank;
    else ranges.push([rank, rank]);
  }
  return ranges.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(', ');
}
