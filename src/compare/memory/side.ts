import { readFileSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { memoryProfiles } from '../../facts/memory-profile/imported.js';
import { analyzeMemory } from '../../facts/memory-profile/memory.js';
import { InferscopeError, messageOf } from '../../model/errors.js';
import { openSession, type Session } from '../../session/open.js';
import type { ComparedSide } from './compare.js';
import { checkComparedProfile, readComparedProfile } from './read-profile.js';

/**
 * Resolves a typed side: a name that ends in .json, contains a slash or is a file here is a file, anything else a
 * session.
 * @throws E_SESSION_NOT_FOUND, E_SESSION_AMBIGUOUS, E_RECORD_FILE
 */
export async function comparedSide(
  selector: string,
  fill: Parameters<typeof readComparedProfile>[2],
): Promise<ComparedSide> {
  if (/\.json$|[/\\]/.test(selector) || statSync(selector, { throwIfNoEntry: false })?.isFile()) {
    let content: string;
    try {
      content = readFileSync(selector, 'utf8');
    } catch (error) {
      throw new InferscopeError('E_RECORD_FILE', {
        what: `${selector} cannot be read`,
        why: messageOf(error),
        fix: 'Give the JSON file of a memory profile, or a session: inferscope memory compare @last~1 @last',
      });
    }
    return {
      selector,
      kind: 'file',
      label: basename(selector),
      ...readComparedProfile(content, selector, fill),
    };
  }
  return sessionSide(await openSession(selector, undefined, memoryProfiles), selector);
}

export async function sessionSide(session: Session, selector: string): Promise<ComparedSide> {
  const { data } = await analyzeMemory(session);
  const label = session.user.name ?? session.id;
  return { selector, kind: 'session', label, ...checkComparedProfile(data.profile, label) };
}
