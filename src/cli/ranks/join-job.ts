import { rmSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { InferscopeError } from '../../model/errors.js';
import type { RankFiles } from '../../model/ranks.js';
import { rankIssues } from '../../record/ranks/issues.js';
import { type Joined, joinParts, type RankedPart } from '../../record/ranks/join-parts.js';
import { readPart } from '../../record/ranks/part.js';
import {
  type Recorded,
  type Recording,
  recordSession,
  type SavedSession,
} from '../../record/record-session.js';
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
  const ranked = recordedParts(folder, recorded);
  const plan = {
    label: name ?? basename(folder),
    kind: 'run',
    name: name ?? null,
    tags: [...tags],
    doing: 'save the session',
  };
  const lost = unfinished.filter((rank) => !recorded.includes(rank));
  const saved = await recordSession(plan, async (recording) => ({
    ...(await recordJoined(recording, ranked, lost)),
    result: {},
  })).catch((error: unknown) => {
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

/** How the rank of each part is known. */
const source = 'launcher' as const;

/** @throws E_USAGE without a recorded rank */
function recordedParts(folder: string, ranks: readonly number[]): RankedPart[] {
  const parts = ranks.flatMap((rank): RankedPart[] => {
    const partFolder = rankFolder(folder, rank);
    const part = readPart(partFolder);
    return part === null || 'failed' in part ? [] : [{ folder: partFolder, part, rank, source }];
  });
  if (parts.length === 0)
    throw new InferscopeError('E_USAGE', {
      what: `${folder} has no recorded rank`,
      why: 'inferscope run, started by srun, torchrun or mpirun, recorded no ranks into this folder.',
      fix: "Name the folder that rank 0 printed. For files of profilers: inferscope import 'traces/**' --ranks",
    });
  return parts;
}

/** @param lost ranks that started to record and did not end */
async function recordJoined(
  recording: Recording,
  ranked: readonly RankedPart[],
  lost: readonly number[],
): Promise<Recorded> {
  const joined = await joinParts(recording, ranked, { executionId: null });
  const rankFiles = rankFilesOf(joined, ranked, lost);
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
    issues: [...rankIssues(rankFiles, joined.parts), ...(await attachGpuRoofline(recording.files, hardware))],
  };
}

/** The outcome of each rank, as the session stores it. */
function rankFilesOf(joined: Joined, ranked: readonly RankedPart[], lost: readonly number[]): RankFiles {
  const { worldSize, clocks, missing } = joined;
  return {
    world_size: worldSize,
    files: [
      ...ranked.map(({ rank }) => ({
        file: `rank-${rank}`,
        outcome: 'imported' as const,
        rank,
        rank_source: source,
        reason: null,
      })),
      ...lost.map((rank) => ({
        file: `rank-${rank}`,
        outcome: 'failed' as const,
        rank,
        rank_source: source,
        reason: 'Its recording has not ended: it was killed, or it still runs.',
      })),
    ],
    clocks,
    missing,
  };
}
