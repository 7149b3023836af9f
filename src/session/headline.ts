import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Session } from './open.js';
import { writeAtomically } from '../model/atomic-write.js';

/** A session's headline in a list. */
export interface Headline {
  text: string;
  /** Its figure as a number, to compare with other sessions of the same name and unit. */
  figure: { name: string; value: number; unit: string };
}

/** File below derived/ with the headline, so that lists need not open the session. */
const headlineFile = 'headline.json';

/**
 * Saves the headline after each analysis; if it cannot be written, it is only missing from the list.
 * @param headline null if the analysis found no headline time
 */
export function saveHeadline(
  { folder, sha256 }: Pick<Session, 'folder' | 'sha256'>,
  headline: Headline | null,
): void {
  if (JSON.stringify(readHeadline(folder, sha256)) === JSON.stringify(headline)) return;
  try {
    writeAtomically(
      join(folder, 'derived', headlineFile),
      JSON.stringify({ session_sha256: sha256, headline }),
    );
  } catch {
    // The home is read-only, or the disk is full.
  }
}

/** Null if the session has no headline time; undefined if it was not analyzed in this state. */
export function readHeadline(folder: string, sha256: string): Headline | null | undefined {
  try {
    const stored = JSON.parse(readFileSync(join(folder, 'derived', headlineFile), 'utf8')) as Record<
      string,
      unknown
    >;
    const { session_sha256: sessionHash, headline } = stored;
    if (sessionHash !== sha256) return undefined;
    return headline === null || isHeadline(headline) ? headline : undefined;
  } catch {
    return undefined;
  }
}

/** Checks the content: derived/ is not covered by the checksums, and an archive may come from anyone. */
function isHeadline(stored: unknown): stored is Headline {
  const { text, figure } = stored as Partial<Headline>;
  const isShort = (value: unknown): boolean => typeof value === 'string' && value.length <= 160;
  return isShort(text) && isShort(figure?.name) && isShort(figure?.unit) && Number.isFinite(figure?.value);
}
