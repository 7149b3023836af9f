import type { Context } from '../model/context.js';
import type { UserData } from '../model/manifest.js';
import type { SessionFolder } from './folders.js';
import { homeFolders, type Home } from './home.js';
import { checkNewName } from './name.js';
import { changeUser } from './user-file.js';
import { InferscopeError } from '../model/errors.js';

/** Gives a session a name; null takes it away. @throws E_SESSION_NAME */
export async function renameSession(
  session: SessionFolder,
  name: string | null,
  home: Home = homeFolders(),
): Promise<UserData> {
  if (name !== null) checkNewName(name, home, session.id);
  return changeUser(session.folder, (user) => ({ ...user, name }));
}

/** Adds and removes tags; a tag given twice is kept once. @throws E_USAGE for an unusable tag */
export async function tagSession(
  session: SessionFolder,
  change: { add: string[]; remove: string[] },
): Promise<UserData> {
  for (const tag of change.add) checkTag(tag);
  return changeUser(session.folder, (user) => ({
    ...user,
    tags: [...new Set([...user.tags, ...change.add])].filter((tag) => !change.remove.includes(tag)).sort(),
  }));
}

/** Appends a note with the time it was written. */
export async function noteSession(
  session: SessionFolder,
  text: string,
  at: Date = new Date(),
): Promise<UserData> {
  return changeUser(session.folder, (user) => ({
    ...user,
    notes: [...user.notes, { at: at.toISOString(), text }],
  }));
}

/** Adds to what is known of the workload; `clear` forgets what was given before. */
export async function giveContext(
  session: Pick<SessionFolder, 'folder'>,
  given: Context,
  clear = false,
): Promise<UserData> {
  return changeUser(session.folder, ({ context, ...user }) => {
    const next = { ...(clear ? {} : context), ...given };
    return { ...user, ...(Object.keys(next).length > 0 && { context: next }) };
  });
}

function checkTag(tag: string): void {
  if (/^[^\s,-][^\s,]{0,63}$/.test(tag)) return;
  throw new InferscopeError('E_USAGE', {
    what: `"${tag}" cannot be a tag`,
    why: 'Tags have 1 to 64 characters without spaces or commas and do not start with a dash.',
    fix: 'For example: inferscope session tag @last baseline h100',
  });
}
