import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Session } from './open.js';

/** Below derived/: the figure of a session in a few words, for lists, which open no session. */
const file = 'headline.json';

/**
 * Written wherever a session was analyzed; what cannot be written is missing from the list, and that is all.
 * @param text null where the analysis found no time to lead with
 */
export function keepHeadline(
  { folder, sha256 }: Pick<Session, 'folder' | 'sha256'>,
  text: string | null,
): void {
  if (readHeadline(folder, sha256) === text) return;
  const path = join(folder, 'derived', file);
  const fresh = `${path}.${randomBytes(4).toString('hex')}.tmp`;
  try {
    mkdirSync(join(folder, 'derived'), { recursive: true });
    writeFileSync(fresh, JSON.stringify({ session_sha256: sha256, text }));
    renameSync(fresh, path);
  } catch {
    // A store that may only be read, or a full disk.
    rmSync(fresh, { force: true });
  }
}

/** Null where the session has no time to lead with; undefined where it was not analyzed in this state. */
export function readHeadline(folder: string, sha256: string): string | null | undefined {
  try {
    const kept = JSON.parse(readFileSync(join(folder, 'derived', file), 'utf8')) as Record<string, unknown>;
    const { session_sha256: of, text } = kept;
    // derived/ is outside the checksums, and may come from somebody else's archive.
    const known = of === sha256 && (text === null || (typeof text === 'string' && text.length <= 80));
    return known ? text : undefined;
  } catch {
    return undefined;
  }
}
