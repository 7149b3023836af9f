import type { Session } from '../session/open.js';

/** Which session a document is about. */
export function sessionIdentity({ id, user, manifest }: Session) {
  const { title, kind, started_at, status } = manifest;
  return { id, name: user.name, title, kind, started_at, status };
}
