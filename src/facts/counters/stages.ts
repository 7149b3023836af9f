import type { SessionDatabase } from '../../session/query.js';

/** Phases of a forward pass, then enclosing phases: a decode step in a warm-up counts as decode. */
const kinds = ['sampling', 'decode', 'prefill', 'mixed', 'load', 'warmup'] as const;
const phaseWord = new RegExp(`(?<![a-z])(${kinds.join('|')})(?![a-z])`, 'i');

/**
 * The phase of a profiled launch from its enclosing NVTX ranges ("outer / inner"): by stage names of the session's own
 * timeline, else by a phase name within a range name.
 */
export async function readStageOf(database: SessionDatabase): Promise<(path: string) => string | null> {
  const rows = await database.query<{ raw_name: string; kind: string }>(
    `SELECT DISTINCT raw_name, kind FROM stages WHERE raw_name IS NOT NULL AND kind IS NOT NULL AND kind <> 'other'`,
  );
  const kindByName = new Map(rows.map(({ raw_name, kind }) => [raw_name, kind]));
  const kindOf = (range: string) =>
    kindByName.get(range) ?? phaseWord.exec(range)?.[1]?.toLowerCase() ?? null;
  return (path) => {
    const found = path.split(' / ').map((range) => kindOf(range.trim()));
    const phase = found.findLast((kind) => kind !== null && kind !== 'warmup' && kind !== 'load');
    return phase ?? found.findLast((kind) => kind !== null) ?? null;
  };
}

/** The phases of several paths, each once: "decode", "decode and prefill"; null if none is known. */
export function stageNames(
  paths: readonly string[],
  stageOf: (path: string) => string | null,
): string | null {
  const stages = [...new Set(paths.map(stageOf).filter((stage) => stage !== null))].sort();
  return stages.length === 0 ? null : stages.join(' and ');
}
