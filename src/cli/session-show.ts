import { document, type Document } from '../model/document.js';
import type { SessionDetails } from '../model/documents/session.js';
import { savedFiles, totalBytes } from '../session/manifest-file.js';
import type { Session } from '../session/open.js';

/** The document of `session show`, and of commands with a session that has no summary. */
export function sessionShowDocument(session: Session): Document<SessionDetails> {
  const { folder, toolVersion: written_by, manifest, user, userIssue } = session;
  const bytes = totalBytes(savedFiles(manifest));
  const data = { folder, written_by, bytes, user, manifest, import_issues: session.issues };
  return document('session-show', '1.1', data, userIssue ? [userIssue] : []);
}
