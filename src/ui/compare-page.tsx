import { compareMemory } from '../compare/memory/compare.js';
import { sessionSide as memorySide } from '../compare/memory/side.js';
import { sessionSide as benchSide } from '../compare/metrics/bench-side.js';
import { compareSides } from '../compare/metrics/compare.js';
import { compareSessions } from '../compare/sessions/compare.js';
import { readChosenSteps, type StepChoice } from '../facts/trace/chosen-steps.js';
import { document } from '../model/document.js';
import { InferscopeError } from '../model/errors.js';
import { hasRows, hasSubject, type Subject } from '../model/subjects.js';
import type { Session } from '../session/open.js';
import { pageOfView } from '../render/html/view.js';
import { benchCompareView } from '../views/bench-compare.js';
import type { View } from '../views/block.js';
import { compareView } from '../views/compare.js';
import { letter } from '../views/compare-sides.js';
import { memoryCompareView } from '../views/memory-compare.js';
import { alignedSteps, type Side } from './aligned-steps.js';
import { inScope } from './named-events.js';
import { Navigation } from './pages.js';
import { pagesOfSession } from './open-session-pages.js';
import { comparePath, sessionPath } from './session-path.js';
import { once, type OpenSession } from './timeline/open-timelines.js';

/**
 * What differs between sessions: waterfalls side by side with one step of each on one axis; of two memory profiles their components; of
 * two benchmarks, load tests or results their metrics.
 * @param step median, slowest or a number
 * @param scripts of a page with charts
 * @throws E_USAGE for fewer than two sessions, or sessions with nothing in common
 */
export async function comparePage(
  openSessions: readonly OpenSession[],
  step: string,
  scripts: { clientScript: string; readingScript: string; moreScripts: readonly string[] },
): Promise<string> {
  if (openSessions.length < 2)
    throw new InferscopeError('E_USAGE', {
      what: 'A comparison needs two sessions',
      why: `${openSessions.length} chosen.`,
      fix: 'Choose two in the list of sessions.',
    });
  const view = (await pairView(openSessions)) ?? (await timesView(openSessions, choiceOf(step)));
  return pageOfView(view, {
    ...scripts,
    navigation: <Navigation current="" compared={openSessions.map(pagesOfSession)} />,
  });
}

/** Two memory profiles or two benchmarks without a timeline; null for other sessions. */
async function pairView(openSessions: readonly OpenSession[]): Promise<View | null> {
  const sessions = openSessions.map(({ session }) => session);
  const all = (...subjects: Subject[]): boolean =>
    sessions.every(({ manifest }) => subjects.some((subject) => hasSubject(manifest, subject)));
  const [base, now] = sessions;
  if (sessions.length !== 2 || all('timeline', 'profile')) return null;
  const nameOf = ({ user, id }: Session): string => user.name ?? id;
  if (all('memory'))
    return memoryCompareView(
      compareMemory(await memorySide(base!, nameOf(base!)), await memorySide(now!, nameOf(now!))),
    );
  if (!all('bench', 'load', 'results')) return null;
  const sideOf = (session: Session) => benchSide(session, { selector: nameOf(session), variant: null });
  const compared = compareSides(await sideOf(base!), await sideOf(now!), { gates: [], withinProcess: false });
  return benchCompareView(document('bench-compare', '1.0', compared));
}

/** Stages, classes and kernels of sessions with times of their parts. */
async function timesView(openSessions: readonly OpenSession[], choice: StepChoice): Promise<View> {
  const compared = await compareSessions(openSessions.map(({ session }) => session));
  const view = compareView(compared, (index, name) => {
    const { key, session } = openSessions[index]!;
    if (name === undefined) return sessionPath(key);
    return hasRows(session.manifest, 'kernels')
      ? `${sessionPath(key, '/kernels')}?${new URLSearchParams({ name })}#chosen`
      : undefined;
  });
  const sides = await Promise.all(
    openSessions.map((openSession, index) => sideOf(openSession, index, choice)),
  );
  const steps = alignedSteps(sides, {
    choice,
    choose: (chosen) => `${comparePath(openSessions)}&step=${chosen}#steps`,
    clean: compared.data.waterfalls.some(({ profiled }) => !profiled),
  });
  const [first, ...otherSections] = view.sections;
  return { ...view, sections: first && steps ? [first, steps, ...otherSections] : view.sections };
}

/** Any other text than "slowest" or a step number selects the median step. */
const choiceOf = (query: string): StepChoice =>
  query === 'slowest' ? query : /^[1-9]\d{0,6}$/.test(query) ? Number(query) : 'median';

/** A compared session with the selected step of each kind; no steps without kernels. */
async function sideOf(openSession: OpenSession, index: number, choice: StepChoice): Promise<Side> {
  const { session } = openSession;
  const stepsOf = (chosen: StepChoice) =>
    once(openSession, `step ${chosen}`, () =>
      inScope(session, async (scope) => ({ steps: await readChosenSteps(scope, chosen) })),
    );
  const hasKernels = hasRows(session.manifest, 'kernels');
  // A kind of step has a median exactly if it has any step, so the median lists all kinds.
  const counts = hasKernels ? (await stepsOf('median')).steps : [];
  const steps = hasKernels ? await stepsOf(choice) : null;
  return {
    letter: letter(index),
    counts,
    steps: steps?.steps ?? [],
    linkTo: (start, end) => {
      const query = { execution: steps?.part.execution ?? '', start: String(start), end: String(end) };
      return `${sessionPath(openSession.key, '/timeline')}?${new URLSearchParams(query)}`;
    },
  };
}
