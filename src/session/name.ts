import { InferscopeError } from '../model/errors.js';
import { sessionFolders } from './folders.js';
import type { Home } from './home.js';
import { readUser } from './user-file.js';

const namePattern = /^[^\s@/\\][^\s/\\@]{0,63}$/;

/**
 * A name must select exactly one session: unique, no @ (selectors), and neither an id nor the start of one.
 * @param ownId the session that may have the name already
 * @throws E_SESSION_NAME
 */
export function checkNewName(name: string, home: Home, ownId: string | null = null): void {
  const refuse = (why: string): never => {
    throw new InferscopeError('E_SESSION_NAME', {
      what: `a session cannot be called "${name}"`,
      why,
      fix: 'Choose another name, for example llm-b1 or before-graphs.',
    });
  };
  if (!namePattern.test(name)) {
    refuse('Names have 1 to 64 characters without spaces, slashes and @ (as in @last).');
  }
  if (/^\d{8}(-\d*)?$/.test(name)) refuse('It reads like the beginning of a session id.');
  for (const { id, folder } of sessionFolders(home)) {
    if (id.startsWith(name) && id !== ownId) refuse(`The session id ${id} starts with it.`);
    if (id === ownId && id.startsWith(name)) refuse(`The session's own id starts with it.`);
    if (id !== ownId && readUser(folder).user.name === name)
      refuse(`The session ${id} has this name already.`);
  }
}
