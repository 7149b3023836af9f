import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Session } from './open.js';
import { writeWhole } from '../model/whole-file.js';

/** What a list says of a session. */
export interface Headline {
  text: string;
  /** Its figure as a number, to be set next to that of other sessions of the same name and unit. */
  figure: { name: string; value: number; unit: string };
}

/** Below derived/: the figure of a session in a few words, for lists, which open no session. */
const file = 'headline.json';

/**
 * Written wherever a session was analyzed; what cannot be written is missing from the list, and that is all.
 * @param headline null where the analysis found no time to lead with
 */
export function keepHeadline(
  { folder, sha256 }: Pick<Session, 'folder' | 'sha256'>,
  headline: Headline | null,
): void {
  if (JSON.stringify(readHeadline(folder, sha256)) === JSON.stringify(headline)) return;
  try {
    writeWhole(join(folder, 'derived', file), JSON.stringify({ session_sha256: sha256, headline }));
  } catch {
    // A store that may only be read, or a full disk.
  }
}

/** Null where the session has no time to lead with; undefined where it was not analyzed in this state. */
export function readHeadline(folder: string, sha256: string): Headline | null | undefined {
  try {
    const kept = JSON.parse(readFileSync(join(folder, 'derived', file), 'utf8')) as Record<string, unknown>;
    const { session_sha256: of, headline } = kept;
    if (of !== sha256) return undefined;
    return headline === null || isHeadline(headline) ? headline : undefined;
  } catch {
    return undefined;
  }
}

/** derived/ is outside the checksums, and may come from somebody else's archive. */
function isHeadline(kept: unknown): kept is Headline {
  const { text, figure } = kept as Partial<Headline>;
  const isShort = (value: unknown): boolean => typeof value === 'string' && value.length <= 80;
  return isShort(text) && isShort(figure?.name) && isShort(figure?.unit) && Number.isFinite(figure?.value);
}
