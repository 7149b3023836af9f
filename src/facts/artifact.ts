import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type MachineRoofline, machineRooflineSchema } from '../model/documents/roofline.js';
import { InferscopeError } from '../model/errors.js';
import { holds, type Subject } from '../model/subjects.js';
import type { Session } from '../session/open.js';
import { corrupt } from '../session/session-problem.js';
import { subjectList, subjectWords } from '../vocabulary/subjects.js';

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

/** @throws E_USAGE where the session does not hold it: what it holds, and what makes one that does */
export function requireSubject({ id, manifest }: Pick<Session, 'id' | 'manifest'>, subject: Subject): void {
  if (holds(manifest, subject)) return;
  const { label, command } = subjectWords[subject];
  const shown = manifest.subjects.length > 0 ? 'report' : 'session show';
  throw new InferscopeError('E_USAGE', {
    what: `session ${id} does not hold ${label}`,
    why: `It holds ${subjectList(manifest.subjects)}.`,
    fix: `To see it: inferscope ${shown} ${id}. To make ${label}: ${command}`,
  });
}

const planKinds = {
  bench: 'bench-plan',
  load: 'load-plan',
  memory: 'memory-plan',
  kernels: 'kernel-plan',
  validation: 'validation',
  roofline: 'roofline-gpu',
} as const satisfies Partial<Record<Subject, string>>;

/**
 * What a session of our own measurements was to measure, or found.
 * @throws E_USAGE when it holds none, E_SESSION_CORRUPT
 */
export async function planOf(session: Session, subject: keyof typeof planKinds): Promise<unknown> {
  requireSubject(session, subject);
  const kind = planKinds[subject];
  const { label } = subjectWords[subject];
  const found = await artifactJson(session, kind, `what ${label} was to measure`);
  if (found !== null) return found;
  throw corrupt(session.id, `${kind} is missing`, `The manifest says that it holds ${label}.`);
}

/** The roofline the session was measured beside: a machine's roofs drift, so each session keeps its own. */
export async function storedRoofline(session: Session): Promise<MachineRoofline | null> {
  const found = await artifactJson(session, 'roofline', 'the roofline that the session was measured beside');
  return found === null ? null : machineRooflineSchema.parse(found);
}
