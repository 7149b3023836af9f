import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type MachineRoofline, machineRooflineSchema } from '../model/documents/roofline.js';
import { InferscopeError } from '../model/errors.js';
import type { Session } from '../session/open.js';

/**
 * The JSON in a session's first artifact of a kind, checked against its checksum; null when there is none.
 * @param holds what is in it, for the message
 * @throws E_SESSION_CORRUPT when it is missing or was changed
 */
export async function artifactJson(session: Session, kind: string, holds: string): Promise<unknown> {
  const artifact = session.manifest.artifacts.find((one) => one.kind === kind);
  if (!artifact) return null;
  const bytes = await readFile(join(session.folder, artifact.path)).catch(() => null);
  const sha256 = bytes && createHash('sha256').update(bytes).digest('hex');
  if (bytes === null || sha256 !== artifact.sha256) {
    throw new InferscopeError('E_SESSION_CORRUPT', {
      what: `session ${session.id} is damaged: ${artifact.path} ${bytes === null ? 'is missing' : 'does not match its checksum'}`,
      why: `It holds ${holds}.`,
      fix: `inferscope session verify ${session.id} lists every damaged file.`,
    });
  }
  return JSON.parse(bytes.toString('utf8'));
}

/** The roofline the session was measured beside: a machine's roofs drift, so each session keeps its own. */
export async function storedRoofline(session: Session): Promise<MachineRoofline | null> {
  const found = await artifactJson(session, 'roofline', 'the roofline that the session was measured beside');
  return found === null ? null : machineRooflineSchema.parse(found);
}
