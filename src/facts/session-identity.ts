import type { Session } from '../session/open.js';

/** The session of a document that names its kind. */
export function sessionIdentity({ id, user, manifest }: Session) {
  const { title, kind, started_at, status } = manifest;
  return { id, name: user.name, title, kind, started_at, status };
}

/** The session of a document about one kind. */
export function sessionOfKind(session: Session) {
  const { kind: _, ...identity } = sessionIdentity(session);
  return identity;
}
