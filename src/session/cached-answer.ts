import { statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { z } from 'zod';
import { childEntry } from '../model/installation.js';
import { toolVersion } from '../model/version.js';
import type { Session } from './open.js';
import { writeAtomically } from '../model/atomic-write.js';

/** For smaller sessions computing is faster than reading the file. */
const minCachedRows = 500_000;

/**
 * A cached answer about a large session, saved in its derived/. It is valid as long as the session's manifest, name and given context, and
 * this installation are the same. A file that cannot be read or written only costs time.
 * @param name of the file, without .json
 */
export async function cachedAnswer<T>(
  session: Session,
  name: string,
  schema: z.ZodType<T>,
  compute: () => Promise<T>,
): Promise<T> {
  const rows = Object.values(session.manifest.tables).flat();
  if (rows.reduce((sum, file) => sum + file.rows, 0) < minCachedRows) return compute();
  const path = join(session.folder, 'derived', `${name}.json`);
  const { name: sessionName, context } = session.user;
  const key = [
    session.sha256,
    sessionName ?? '',
    JSON.stringify(context ?? {}),
    toolVersion,
    buildStamp(),
  ].join(' ');
  const cached = await readCached(path, key, schema);
  if (cached !== null) return cached;
  const answer = await compute();
  try {
    writeAtomically(path, JSON.stringify({ key, answer }));
  } catch {
    // The home is read-only, or the disk is full: the answer is returned anyway.
  }
  return answer;
}

async function readCached<T>(path: string, key: string, schema: z.ZodType<T>): Promise<T | null> {
  try {
    const stored = JSON.parse(await readFile(path, 'utf8')) as { key?: unknown; answer?: unknown };
    if (stored.key !== key) return null;
    // derived/ is not covered by the checksums, and an archive may come from anyone.
    const checked = schema.safeParse(stored.answer);
    return checked.success ? checked.data : null;
  } catch {
    return null;
  }
}

/** Distinguishes builds of one version. */
function buildStamp(): string {
  try {
    return String(statSync(childEntry('cli')).mtimeMs);
  } catch {
    return '';
  }
}
