import { InferscopeError } from '../model/errors.js';
import type { ManifestData } from '../model/manifest.js';
import { nearest } from '../model/nearest.js';
import { hasRows } from '../model/subjects.js';
import { plural } from '../vocabulary/format.js';
import { type SessionFolder, sessionFolders } from './folders.js';
import { homeFolders, type Home } from './home.js';
import { checkSizes, readManifest } from './manifest-file.js';
import { readUser } from './user-file.js';

/** Sessions that a command can use. */
export interface SessionFilter {
  /** Plural noun: "memory profiles". */
  name: string;
  matches: (manifest: ManifestData) => boolean;
}

/** Sessions with rows in one of these tables. */
export const withRows = (name: string, ...tables: string[]): SessionFilter => ({
  name,
  matches: (manifest) => hasRows(manifest, ...tables),
});

/**
 * Finds the session of a selector: an id or a unique prefix of one, a name, @last (made or imported last), @last~1 (the one before). If
 * several homes have the id, the first home is used.
 * @param usable sessions that @last counts; an id or a name is not restricted
 * @throws E_SESSION_NOT_FOUND, E_SESSION_AMBIGUOUS, E_USAGE for an @word that is not @last
 */
export function selectSession(
  selector: string,
  home: Home | readonly Home[] = homeFolders(),
  usable: SessionFilter | null = null,
): SessionFolder {
  const homes = [home].flat();
  const folders = sessionFolders(...homes);
  const homesText = homes.map(({ sessions }) => sessions).join(' and ');
  if (selector.startsWith('@')) return selectLast(selector, folders, homesText, usable);
  const exact = folders.find(({ id }) => id === selector);
  if (exact) return exact;
  const prefixed = selector === '' ? [] : folders.filter(({ id }) => id.startsWith(selector));
  // Names are read from disk, so only if no id matches.
  const sessions = folders.map(({ id, folder }) => ({ id, folder, name: readUser(folder).user.name }));
  const byName = sessions.filter(({ name }) => name === selector);
  const matches = byName.length > 0 ? byName : prefixed;
  if (matches.length === 1 && matches[0]) return { id: matches[0].id, folder: matches[0].folder };
  if (matches.length > 1) throw ambiguous(selector, matches, byName.length > 0);
  throw notFound(
    selector,
    folders.length,
    sessions.flatMap(({ id, name }) => (name ? [id, name] : [id])),
    homesText,
  );
}

function selectLast(
  selector: string,
  folders: SessionFolder[],
  homesText: string,
  usable: SessionFilter | null,
): SessionFolder {
  const match = /^@last(?:~(\d{1,6}))?$/.exec(selector);
  if (!match) {
    throw new InferscopeError('E_USAGE', {
      what: `"${selector}" selects nothing`,
      why: 'Selectors with @ are @last, @last~1, @last~2, …',
      fix: 'Type @last, a name or the beginning of an id; inferscope session list shows them.',
    });
  }
  const stepsBack = Number(match[1] ?? 0);
  const session = usable === null ? folders.at(-1 - stepsBack) : lastUsable(folders, stepsBack, usable);
  if (session) return session;
  if (usable !== null && folders.length > 0)
    throw new InferscopeError('E_SESSION_NOT_FOUND', {
      what: `there is no session ${selector} with ${usable.name}`,
      why: `Here @last counts sessions with ${usable.name}; ${homesText} holds ${plural(folders.length, 'session')} in all.`,
      fix: 'inferscope session list shows them.',
    });
  throw new InferscopeError('E_SESSION_NOT_FOUND', {
    what: `there is no session ${selector}`,
    why:
      folders.length === 0
        ? `${homesText} holds no session yet.`
        : `${homesText} holds ${plural(folders.length, 'session')}.`,
    fix: folders.length === 0 ? 'inferscope profile makes one.' : 'inferscope session list shows them.',
  });
}

/** Every session that a command can use, the one made or imported last at the end; without damaged ones. */
export function usableSessions({ matches }: SessionFilter, home: Home = homeFolders()): SessionFolder[] {
  return sessionFolders(home).filter((sessionFolder) => {
    const manifest = manifestOf(sessionFolder);
    return manifest !== null && matches(manifest);
  });
}

/** Reads manifests from the newest on until enough are found. A damaged session counts: opening it reports the damage. */
function lastUsable(
  folders: readonly SessionFolder[],
  stepsBack: number,
  { matches }: SessionFilter,
): SessionFolder | undefined {
  let remaining = stepsBack;
  for (const folder of folders.toReversed()) {
    const manifest = manifestOf(folder);
    if ((manifest === null || matches(manifest)) && remaining-- === 0) return folder;
  }
  return undefined;
}

/** Null if the session is damaged. */
function manifestOf({ id, folder }: SessionFolder): ManifestData | null {
  try {
    const { data } = readManifest(folder, id);
    checkSizes(folder, data);
    return data;
  } catch {
    return null;
  }
}

function ambiguous(selector: string, found: SessionFolder[], byName: boolean): InferscopeError {
  const shownIds = found.slice(-8).map(({ id }) => id);
  const moreText = found.length > shownIds.length ? ` and ${found.length - shownIds.length} more` : '';
  return new InferscopeError('E_SESSION_AMBIGUOUS', {
    what: `"${selector}" selects ${found.length} sessions`,
    why: `${shownIds.join(', ')}${moreText} ${byName ? 'have this name' : 'start with it'}.`,
    fix: `Type more of the id, for example ${shownIds.at(-1) ?? ''}`,
  });
}

function notFound(selector: string, count: number, candidates: string[], homesText: string): InferscopeError {
  const near = nearest(selector, candidates);
  const list = count === 0 ? 'inferscope profile makes one.' : 'inferscope session list shows all.';
  return new InferscopeError('E_SESSION_NOT_FOUND', {
    what: `there is no ${/[./\\]/.test(selector) ? 'file or ' : ''}session "${selector}"`,
    why:
      count === 0
        ? `${homesText} holds no session yet.`
        : `${homesText} holds ${plural(count, 'session')}; none has this name, or an id that starts with it.`,
    fix: near !== null ? `Did you mean ${near}? ${list}` : list,
  });
}
