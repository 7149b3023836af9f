import type { Session } from '../session/open.js';

/** The session of a document. */
export function sessionIdentity({ id, user, manifest }: Session) {
  const { title, kind, started_at, status } = manifest;
  return { id, name: user.name, title, kind, started_at, status };
}
