import { existsSync } from 'node:fs';
import type { SideData } from './compare.js';
import { refuseShared } from './pairs.js';
import { comparable, sampleSessions } from './sample.js';
import { readBenchPlan } from '../../facts/bench/plan.js';
import type { ComparedSide } from '../../model/documents/bench-compare.js';
import { InferscopeError } from '../../model/errors.js';
import { hasSubject } from '../../model/subjects.js';
import { type Home, homeFolders } from '../../session/home.js';
import { openSession, type Session } from '../../session/open.js';
import { baselineNames, isBaselineFile, readBaseline } from './baseline-store.js';

/**
 * Resolves a typed side: a baseline's file (ends in .json or contains a slash), a session, a session with the label of
 * a variant, or a baseline by name.
 * @throws E_SESSION_NOT_FOUND, E_SESSION_AMBIGUOUS, E_USAGE, E_RECORD_FILE
 */
export async function comparedSide(selector: string, home: Home = homeFolders()): Promise<SideData> {
  if (isBaselineFile(selector)) {
    if (existsSync(selector)) return storedSide(selector, home);
    // A session's name may end in .json, too; the message is about the file.
    const session = await openSession(selector, home, comparable).catch((error: unknown) => {
      if (isUnknown(error)) return null;
      throw error;
    });
    return session === null ? storedSide(selector, home) : sessionSide(session, { selector, variant: null });
  }
  const found = await sessionOf(selector, home);
  if (found === null) return storedSide(selector, home);
  return sessionSide(found.session, { selector, variant: found.variant });
}

/** @throws E_USAGE if the session has no comparable figures, or no such variant */
export async function sessionSide(
  session: Session,
  { selector, variant }: { selector: string; variant: string | null },
): Promise<SideData> {
  const { sessions, ...sampled } = await sampleSessions([session], variant);
  const caveats = await caveatsOf(session);
  return { side: { selector, baseline: null, variant, sessions }, caveats, ...sampled };
}

/** The engine's notes about its launches. */
async function caveatsOf(session: Session): Promise<string[]> {
  if (!hasSubject(session.manifest, 'bench')) return [];
  const { not_measured: notMeasured } = await readBenchPlan(session);
  return notMeasured.filter(({ figure }) => figure === 'launches').map(({ text }) => text);
}

async function storedSide(selector: string, home: Home): Promise<SideData> {
  const { name, sessions, identity, metrics } = await readBaseline(selector, home);
  return { side: { selector, baseline: name, variant: null, sessions }, identity, metrics };
}

/** Names and labels may contain colons: the longest name that is a session wins. Null for a baseline's name. */
async function sessionOf(
  selector: string,
  home: Home,
): Promise<{ session: Session; variant: string | null } | null> {
  let failure: unknown;
  for (let colon = selector.length; colon > 0; colon = selector.lastIndexOf(':', colon - 1)) {
    try {
      const variant = colon === selector.length ? null : selector.slice(colon + 1);
      return { session: await openSession(selector.slice(0, colon), home, comparable), variant };
    } catch (error) {
      if (!isUnknown(error)) throw error;
      failure ??= error;
    }
  }
  const names = await baselineNames(home);
  if (names.includes(selector)) return null;
  if (!(failure instanceof InferscopeError) || names.length === 0) throw failure;
  const { what, why, fix } = failure.parts;
  throw new InferscopeError(failure.code, { what, why: `${why} Baselines: ${names.join(', ')}.`, fix });
}

/** `@last:mode=eager` is not a selector as a whole, and fails as an invalid one. */
function isUnknown(error: unknown): boolean {
  return (
    error instanceof InferscopeError && (error.code === 'E_SESSION_NOT_FOUND' || error.code === 'E_USAGE')
  );
}

/** @throws E_USAGE for a session (or one variant of it) against itself */
export function refuseSame(base: ComparedSide, now: ComparedSide): void {
  if (base.variant !== null && now.variant !== null && base.variant !== now.variant) return;
  refuseShared([base.sessions, now.sessions], (id) => ({
    what: `${base.selector} and ${now.selector} share session ${id}`,
    fix: 'Take two sessions, or two variants of one: inferscope bench compare @last:mode=eager @last:mode=cudagraph',
  }));
}
