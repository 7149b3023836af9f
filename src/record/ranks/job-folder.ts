import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Home } from '../../session/home.js';

/** Folder of the jobs that `run` records, each with a folder per rank until they are joined. */
export const jobsFolder = ({ root }: Pick<Home, 'root'>): string => join(root, 'jobs');

/** Folder of a recorded rank. */
export const rankFolder = (folder: string, rank: number): string => join(folder, `rank-${rank}`);

/** Ranks with a folder in the job's folder: recorded ones, and unfinished or killed ones. */
export function ranksIn(folder: string): { recorded: number[]; unfinished: number[] } {
  const names = existsSync(folder) ? readdirSync(folder) : [];
  const numbers = (pattern: RegExp) =>
    names
      .flatMap((name) => pattern.exec(name)?.[1] ?? [])
      .map(Number)
      .toSorted((a, b) => a - b);
  return { recorded: numbers(/^rank-(\d+)$/), unfinished: numbers(/^rank-(\d+)\.recording$/) };
}

/** A job with ranks that are not joined: others are still recording, or are lost. */
export interface WaitingJob {
  folder: string;
  recorded: number[];
  unfinished: number[];
}

export function waitingJobs(home: Home): WaitingJob[] {
  const jobs = jobsFolder(home);
  const names = existsSync(jobs) ? readdirSync(jobs) : [];
  return names.toSorted().flatMap((name) => {
    const folder = join(jobs, name);
    const { recorded, unfinished } = ranksIn(folder);
    return recorded.length + unfinished.length === 0 ? [] : [{ folder, recorded, unfinished }];
  });
}
