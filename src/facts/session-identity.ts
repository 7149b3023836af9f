import type { Session } from '../session/open.js';

/** Session block of documents that include its kind. */
export function sessionIdentity({ id, user, manifest }: Session) {
  const { title, kind, started_at, status } = manifest;
  return { id, name: user.name, title, kind, started_at, status };
}

/** Session block of documents about one kind. */
export function sessionOfKind(session: Session) {
  const { kind: _, ...identity } = sessionIdentity(session);
  return identity;
}
