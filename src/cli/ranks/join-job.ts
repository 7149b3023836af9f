import { rmSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { InferscopeError } from '../../model/errors.js';
import type { RankFiles } from '../../model/ranks.js';
import { rankIssues } from '../../record/ranks/issues.js';
import { joinParts, type RankedPart } from '../../record/ranks/join-parts.js';
import { readPart } from '../../record/ranks/part.js';
import { type SavedSession, recordSession } from '../../record/record-session.js';
import { plural } from '../../vocabulary/format.js';
import { attachGpuRoofline } from '../attach-roofline.js';
import { rankFolder, ranksIn } from '../../record/ranks/job-folder.js';

/**
 * Joins the ranks of a job into one session and removes their folders; the session reports missing ranks.
 * @param path of the folder shared by the ranks
 * @throws E_USAGE without a recorded rank, and the errors of recordSession, after which the folder stays
 */
export async function joinJob(
  path: string,
  { name, tags }: { name: string | undefined; tags: readonly string[] },
): Promise<SavedSession> {
  const folder = resolve(path);
  const { recorded, unfinished } = ranksIn(folder);
  const source = 'launcher' as const;
  const ranked = recorded.flatMap((rank): RankedPart[] => {
    const partFolder = rankFolder(folder, rank);
    const part = readPart(partFolder);
    return part === null || 'failed' in part ? [] : [{ folder: partFolder, part, rank, source }];
  });
  if (ranked.length === 0)
    throw new InferscopeError('E_USAGE', {
      what: `${folder} has no recorded rank`,
      why: 'inferscope run, started by srun, torchrun or mpirun, recorded no ranks into this folder.',
      fix: "Name the folder that rank 0 printed. For files of profilers: inferscope import 'traces/**' --ranks",
    });
  const plan = {
    label: name ?? basename(folder),
    kind: 'run',
    name: name ?? null,
    tags: [...tags],
    doing: 'save the session',
  };
  const saved = await recordSession(plan, async (recording) => {
    const joined = await joinParts(recording, ranked, { executionId: null });
    const unfinishedRanks = unfinished.filter((rank) => !recorded.includes(rank));
    const rankFiles: RankFiles = {
      world_size: joined.worldSize,
      files: [
        ...ranked.map(({ rank }) => ({
          file: `rank-${rank}`,
          outcome: 'imported' as const,
          rank,
          rank_source: source,
          reason: null,
        })),
        ...unfinishedRanks.map((rank) => ({
          file: `rank-${rank}`,
          outcome: 'failed' as const,
          rank,
          rank_source: source,
          reason: 'Its recording has not ended: it was killed, or it still runs.',
        })),
      ],
      clocks: joined.clocks,
      missing: joined.missing,
    };
    await recording.saveJson('ranks', rankFiles);
    const manifests = joined.parts.map(({ session }) => session.manifest);
    const [first] = manifests;
    const { title, command, hardware, software, workload } = first!;
    const states = new Set(manifests.map(({ status }) => status));
    if (joined.missing.length > 0) states.add('interrupted');
    return {
      title: `${title} · ${plural(joined.worldSize ?? ranked.length, 'rank')}`,
      status: (['failed', 'interrupted'] as const).find((status) => states.has(status)) ?? 'complete',
      elsewhere: { startedAt: new Date(Number((joined.zeroNs ?? 0n) / 1_000_000n)), command },
      workload,
      hardware,
      software,
      executions: joined.executions,
      captures: joined.captures,
      issues: [
        ...rankIssues(rankFiles, joined.parts),
        ...(await attachGpuRoofline(recording.files, hardware)),
      ],
      result: {},
    };
  }).catch((error: unknown) => {
    rmSync(join(folder, 'joining'), { recursive: true, force: true });
    throw error;
  });
  // Joined ranks must not be joined again; a rank that still records needs its folder.
  const done =
    unfinished.length === 0
      ? [folder]
      : [...ranked.map((rankedPart) => rankedPart.folder), join(folder, 'joining')];
  for (const place of done) rmSync(place, { recursive: true, force: true });
  return saved;
}
