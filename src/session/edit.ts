import type { Context } from '../model/context.js';
import type { UserData } from '../model/manifest.js';
import type { SessionFolder } from './folders.js';
import { homeFolders, type Home } from './home.js';
import { checkNewName } from './name.js';
import { changeUser } from './user-file.js';
import { InferscopeError } from '../model/errors.js';

/** Sets a session's name; null removes it. @throws E_SESSION_NAME */
export async function renameSession(
  session: SessionFolder,
  name: string | null,
  home: Home = homeFolders(),
): Promise<UserData> {
  if (name !== null) checkNewName(name, home, session.id);
  return changeUser(session.folder, (user) => ({ ...user, name }));
}

/** Adds and removes tags; duplicates are ignored. @throws E_USAGE for an invalid tag */
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

/** Appends a note with the current time. */
export async function noteSession(
  session: SessionFolder,
  text: string,
  time: Date = new Date(),
): Promise<UserData> {
  return changeUser(session.folder, (user) => ({
    ...user,
    notes: [...user.notes, { at: time.toISOString(), text }],
  }));
}

/** Adds to the context of the workload; `clear` first removes earlier context. */
export async function giveContext(
  session: Pick<SessionFolder, 'folder'>,
  newContext: Context,
  clear = false,
): Promise<UserData> {
  return changeUser(session.folder, ({ context, ...user }) => {
    const earlier = clear ? {} : (context ?? {});
    const classes = { ...earlier.kernel_classes, ...newContext.kernel_classes };
    const next = {
      ...earlier,
      ...newContext,
      ...(Object.keys(classes).length > 0 && { kernel_classes: classes }),
    };
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
