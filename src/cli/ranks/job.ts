import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunJob } from '../../capture/run/run-options.js';
import { InferscopeError } from '../../model/errors.js';
import { launchedRank } from '../../model/launched-rank.js';
import { launcherProcess } from '../../model/launcher-words.js';
import { recordVariable } from '../../model/outer-run.js';
import { ownerTag } from '../../model/owner.js';
import { missingRanks, rankRanges } from '../../model/ranks.js';
import type { PartCalls } from '../../record/ranks/calls.js';
import { jobsFolder, rankFolder, ranksIn } from '../../record/ranks/job-folder.js';
import { writePart, partHome } from '../../record/ranks/part.js';
import { ensureWritable } from '../../session/home.js';
import { openSession } from '../../session/open.js';
import { notify } from '../output.js';
import { writeAtomically } from '../../model/atomic-write.js';

/** A process of a launcher with its own `inferscope run`; the sessions of all processes become one session. */
export interface Job extends RunJob {
  rank: number;
  worldSize: number;
  /** Shared by all ranks; each has a subfolder in it. */
  folder: string;
  /** Where this rank records; renamed to its rank's folder after the recording. */
  recording: string;
}

const pollMs = 100;
/** Time after which a rank reports the ranks that it waits for. */
const reportMs = 10_000;

/**
 * The job of this process: its ranks record into `jobs/` of inferscope's home, which all hosts must see.
 * @param name of the job, if the launcher has none
 * @returns null for a process without a launcher of several ranks, and for a child of another `inferscope run`
 * @throws E_USAGE when the job has no name
 */
export function jobOfLauncher(name: string | undefined): Job | null {
  const launched = process.env[recordVariable] === undefined ? launchedRank(process.env) : null;
  if (launched === null || launched.worldSize === null || launched.worldSize < 2) return null;
  const { rank, worldSize, localRank } = launched;
  const key = name ?? launched.job ?? (launched.allHere ? launcherName() : null);
  if (key === null)
    throw new InferscopeError('E_USAGE', {
      what: `rank ${rank} of ${worldSize} does not know the name of its job`,
      why: 'The ranks of a job record into one folder, and this launcher gives them no common name.',
      fix: 'Give a name that no other job has, e.g. --job train-1, or --no-ranks for a session per rank.',
    });
  const folder = join(jobsFolder(ensureWritable()), key.replaceAll(/[^\w.-]+/g, '-'));
  const recording = `${rankFolder(folder, rank)}.recording`;
  // Removes the remains of an earlier start with this name.
  rmSync(rankFolder(folder, rank), { recursive: true, force: true });
  rmSync(recording, { recursive: true, force: true });
  for (const meetingFolder of existsSync(folder) ? readdirSync(folder) : [])
    if (meetingFolder.startsWith('meet-')) rmSync(join(folder, meetingFolder, String(rank)), { force: true });
  mkdirSync(recording, { recursive: true });
  return {
    rank,
    worldSize,
    folder,
    recording,
    samplesGpus: (localRank ?? 0) === 0,
    waitForRanks: (execution, signal) => waitForRanks({ folder, rank, worldSize }, execution, signal),
  };
}

/** MPICH and Intel MPI give their ranks no common name; on one host the process that started them identifies the job. */
function launcherName(): string | null {
  const pid = launcherProcess();
  return pid === null ? null : `mpiexec-${ownerTag(pid)}`;
}

/** Waits until all ranks are here: a program that starts alone would wait for the others in a library, or fail. */
async function waitForRanks(
  { folder, rank, worldSize }: Pick<Job, 'folder' | 'rank' | 'worldSize'>,
  execution: string,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  const meetingFolder = join(folder, `meet-${execution}`);
  mkdirSync(meetingFolder, { recursive: true });
  const port = rank === 0 && process.env['MASTER_PORT'] !== undefined ? await freePort() : null;
  writeAtomically(join(meetingFolder, `${rank}`), port === null ? '' : `${port}`);
  for (let waited = 0; !signal.aborted; waited += pollMs) {
    const presentRanks = new Set([...readdirSync(meetingFolder).map(Number), ...ranksIn(folder).recorded]);
    const missing = missingRanks(worldSize, (candidate) => presentRanks.has(candidate));
    if (missing.length === 0) return torchStoreEnvironment(join(meetingFolder, '0'));
    if (waited === reportMs)
      notify(`rank ${rank} waits for ranks ${rankRanges(missing)} before the execution ${execution}`);
    await sleep(pollMs, undefined, { signal }).catch(() => {});
  }
  return {};
}

/**
 * The environment for torch's store. The store at MASTER_PORT keeps the keys of the previous execution as long as torchrun runs, so ranks
 * would read the addresses of exited processes. Rank 0's program therefore serves a store at another port.
 */
function torchStoreEnvironment(marker: string): Record<string, string> {
  const port = existsSync(marker) ? readFileSync(marker, 'utf8') : '';
  return port === '' ? {} : { MASTER_PORT: port, TORCHELASTIC_USE_AGENT_STORE: 'False' };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/**
 * Moves the session of this rank into the job's folder.
 * @returns whether it was the last one, which joins all; of two that finish together only one returns true
 */
export async function storePart(job: Job, id: string, calls: PartCalls): Promise<boolean> {
  const session = await openSession(id, partHome(job.recording));
  const [clock] = session.manifest.clock_pairs;
  writePart(job.recording, {
    id,
    zero_ns: clock?.realtime_ns ?? null,
    rank: job.rank,
    world_size: job.worldSize,
    software: session.manifest.software,
    host: hostname(),
    ...calls,
  });
  // Renaming changes the shared folder, so that on NFS a listing after it is up to date.
  renameSync(job.recording, rankFolder(job.folder, job.rank));
  const { recorded } = ranksIn(job.folder);
  const missing = missingRanks(job.worldSize, (rank) => recorded.includes(rank));
  if (missing.length > 0) {
    if (job.rank === 0)
      notify(
        `rank 0 of ${job.worldSize} is recorded; the last of ranks ${rankRanges(missing)} joins them (if one is lost: inferscope session join ${job.folder})`,
      );
    return false;
  }
  try {
    mkdirSync(join(job.folder, 'joining'));
    return true;
  } catch {
    return false;
  }
}
