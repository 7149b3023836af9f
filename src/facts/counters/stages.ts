import type { SessionDatabase } from '../../session/query.js';

/** Phases of a model's pass, then what encloses them: a decode step in a warm-up is told as decode. */
const kinds = ['sampling', 'decode', 'prefill', 'mixed', 'load', 'warmup'] as const;
const words = new RegExp(`(?<![a-z])(${kinds.join('|')})(?![a-z])`, 'i');

/**
 * Reads the phase from the NVTX ranges around a profiled launch ("outer / inner"): by the names that the session's own
 * timeline knows as stages, else by a phase's plain name in a range's name.
 */
export async function stageReader(database: SessionDatabase): Promise<(path: string) => string | null> {
  const rows = await database.query<{ raw_name: string; kind: string }>(
    `SELECT DISTINCT raw_name, kind FROM stages WHERE raw_name IS NOT NULL AND kind IS NOT NULL AND kind <> 'other'`,
  );
  const known = new Map(rows.map(({ raw_name, kind }) => [raw_name, kind]));
  const kindOf = (range: string) => known.get(range) ?? words.exec(range)?.[1]?.toLowerCase() ?? null;
  return (path) => {
    const found = path.split(' / ').map((range) => kindOf(range.trim()));
    const phase = found.findLast((kind) => kind !== null && kind !== 'warmup' && kind !== 'load');
    return phase ?? found.findLast((kind) => kind !== null) ?? null;
  };
}

/** The phases of several paths, each once: "decode", "decode and prefill"; null where none is told. */
export function stagesTold(
  paths: readonly string[],
  stageOf: (path: string) => string | null,
): string | null {
  const told = [...new Set(paths.map(stageOf).filter((stage) => stage !== null))].sort();
  return told.length === 0 ? null : told.join(' and ');
}
