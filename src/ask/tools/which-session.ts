import { z } from 'zod';
import { InferscopeError } from '../../model/errors.js';
import type { Session } from '../../session/open.js';

export const sessionInput = {
  session: z.string().optional().describe('id of the session, where there are several; the first by default'),
};

/** @throws E_USAGE with the available ids */
export function whichSession(sessions: readonly Session[], id: string | undefined): Session {
  const found =
    id === undefined
      ? sessions[0]
      : sessions.find((session) => session.id === id || session.user.name === id);
  if (found) return found;
  throw new InferscopeError('E_USAGE', {
    what: `no session ${id}`,
    why: `There are: ${sessions.map((session) => session.id).join(', ')}.`,
    fix: 'Give one of these.',
  });
}
