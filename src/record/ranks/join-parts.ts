import type { Capture, Execution } from '../../model/manifest.js';
import { missingRanks, type RankFiles } from '../../model/ranks.js';
import { openSession } from '../../session/open.js';
import type { Recording } from '../record-session.js';
import { mergeParts, type RankPart } from './merge.js';
import { partHome, type RecordedPart } from './part.js';

/** A recorded or imported part, with the source of its rank. */
export interface RankedPart {
  folder: string;
  part: RecordedPart;
  rank: number;
  source: RankFiles['files'][number]['rank_source'];
}

export interface Joined {
  parts: RankPart[];
  captures: Capture[];
  /** Executions of the parts, if kept separate; times are those of the session. */
  executions: Execution[];
  clocks: RankFiles['clocks'];
  worldSize: number | null;
  missing: number[];
  /** Wall clock of the session's time 0, ns since the epoch. */
  zeroNs: bigint | null;
}

/** Writes all parts into one session; `ranked` is in rank order, and its ranks are updated for reports of whole hosts. */
export async function joinParts(
  { files }: Recording,
  ranked: readonly RankedPart[],
  { executionId }: { executionId: string | null },
): Promise<Joined> {
  const counts = placeProcesses(ranked);
  const hosts = [...new Set(ranked.map(({ part }) => part.host))];
  const parts: RankPart[] = [];
  for (const { folder, part, rank } of ranked)
    parts.push({
      session: await openSession(part.id, partHome(folder)),
      calls: part,
      zeroNs: part.zero_ns === null ? null : BigInt(part.zero_ns),
      rank,
      // Host names are not saved.
      host: hosts.length === 1 ? 'localhost' : `host-${hosts.indexOf(part.host)}`,
    });
  const zeros = parts.flatMap(({ zeroNs }) => zeroNs ?? []);
  const zeroNs = zeros.length > 0 ? zeros.reduce((a, b) => (a < b ? a : b)) : null;
  const worldSize = ranked.reduce<number | null>((known, { part }) => part.world_size ?? known, null);
  const missing = missingRanks(worldSize ?? 0, (rank) =>
    parts.some((part, index) => rank >= part.rank && rank < part.rank + counts[index]!),
  );
  const isComplete = missing.length === 0;
  const {
    captures,
    clocks,
    shifts: moved,
  } = await mergeParts(files, parts, {
    executionId,
    zeroNs,
    isComplete,
  });
  return {
    parts,
    captures,
    executions: joinExecutions(parts, moved),
    clocks,
    worldSize,
    missing,
    zeroNs,
  };
}

/**
 * Reports of whole hosts contain the ranks of their processes: the ranks of the parts are then numbered consecutively.
 * @returns how many ranks each part has
 */
function placeProcesses(ranked: readonly RankedPart[]): number[] {
  const counts = ranked.map(({ part }) => part.processes);
  if (counts.every((count) => count === 1)) return counts;
  let next = 0;
  ranked.forEach((rankedPart, index) => {
    Object.assign(rankedPart, { rank: next, source: 'order of files' });
    next += counts[index]!;
  });
  return counts;
}

/** Each execution once: from the first rank's start to the last one's end, with the exit code of the first rank that failed. */
function joinExecutions(parts: readonly RankPart[], shifts: readonly number[]): Execution[] {
  const joined = new Map<string, Execution>();
  for (const [index, { session }] of parts.entries())
    for (const execution of session.manifest.executions) {
      const shift = (ns: number | null) => (ns === null ? null : ns + shifts[index]!);
      const shifted = { ...execution, start_ns: shift(execution.start_ns), end_ns: shift(execution.end_ns) };
      const old = joined.get(execution.execution_id);
      joined.set(
        execution.execution_id,
        old === undefined
          ? shifted
          : {
              ...old,
              exit_code: old.exit_code === 0 ? shifted.exit_code : old.exit_code,
              start_ns: combine(Math.min, old.start_ns, shifted.start_ns),
              end_ns: combine(Math.max, old.end_ns, shifted.end_ns),
            },
      );
    }
  return [...joined.values()];
}

const combine = (pick: (a: number, b: number) => number, a: number | null, b: number | null) =>
  a === null || b === null ? (a ?? b) : pick(a, b);
