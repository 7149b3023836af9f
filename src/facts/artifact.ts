import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ZodType } from 'zod';
import { type MachineRoofline, machineRooflineSchema } from '../model/documents/roofline.js';
import { InferscopeError } from '../model/errors.js';
import { hasSubject, type Subject } from '../model/subjects.js';
import type { Session } from '../session/open.js';
import { corrupt } from '../session/session-problem.js';
import { subjectList, subjectWords } from '../vocabulary/subjects.js';

/**
 * The JSON of a session's first artifact of a kind, verified against its checksum; null if there is none.
 * @param contents description of the content, for the message
 * @throws E_SESSION_CORRUPT when it is missing or was changed
 */
export async function readArtifactJson(session: Session, kind: string, contents: string): Promise<unknown> {
  const artifact = session.manifest.artifacts.find((entry) => entry.kind === kind);
  if (!artifact) return null;
  const bytes = await readFile(join(session.folder, artifact.path)).catch(() => null);
  const sha256 = bytes && createHash('sha256').update(bytes).digest('hex');
  if (bytes === null || sha256 !== artifact.sha256) {
    throw new InferscopeError('E_SESSION_CORRUPT', {
      what: `session ${session.id} is damaged: ${artifact.path} ${bytes === null ? 'is missing' : 'does not match its checksum'}`,
      why: `It holds ${contents}.`,
      fix: `inferscope session verify ${session.id} lists every damaged file.`,
    });
  }
  return JSON.parse(bytes.toString('utf8'));
}

/** @throws E_USAGE if the session does not have it; the error names what it has and the command to record it */
export function requireSubject({ id, manifest }: Pick<Session, 'id' | 'manifest'>, subject: Subject): void {
  if (hasSubject(manifest, subject)) return;
  const { label, command } = subjectWords[subject];
  const viewCommand = manifest.subjects.length > 0 ? 'report' : 'session show';
  throw new InferscopeError('E_USAGE', {
    what: `session ${id} does not have ${label}`,
    why: `It has ${subjectList(manifest.subjects)}.`,
    fix: `To view it: inferscope ${viewCommand} ${id}. To record ${label}: ${command}`,
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
 * The plan or result of one of our own measurements.
 * @throws E_USAGE if the session has none, E_SESSION_CORRUPT
 */
export async function readPlan<T>(
  session: Session,
  subject: keyof typeof planKinds,
  schema: ZodType<T>,
): Promise<T> {
  requireSubject(session, subject);
  const kind = planKinds[subject];
  const { label } = subjectWords[subject];
  const plan = await readArtifactJson(session, kind, `the plan of ${label}`);
  if (plan !== null) return parsed(session, kind, plan, schema);
  throw corrupt(session.id, `${kind} is missing`, `The manifest lists ${label}.`);
}

/** The roofline measured with the session: a machine's roofs drift, so each session stores its own. */
export async function readStoredRoofline(session: Session): Promise<MachineRoofline | null> {
  const roofline = await readArtifactJson(session, 'roofline', 'the roofline measured with the session');
  return roofline === null ? null : parsed(session, 'roofline', roofline, machineRooflineSchema);
}

/** An artifact that is as it was written, but not in the form of this version, is not our fault and has no stack trace. */
function parsed<T>({ id, manifest }: Session, kind: string, json: unknown, schema: ZodType<T>): T {
  const result = schema.safeParse(json);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new InferscopeError('E_SESSION_CORRUPT', {
    what: `session ${id} has an artifact ${kind} that this version cannot read`,
    why: `${issue!.path.join('.') || 'It'}: ${issue!.message}.`,
    fix: `Read it with the version of inferscope that wrote it, or record again: ${manifest.command.join(' ')}`,
  });
}
