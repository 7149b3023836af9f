import { compareSessions } from '../compare/sessions/compare.js';
import { readChosenSteps, type StepChoice } from '../facts/trace/chosen-steps.js';
import { InferscopeError } from '../model/errors.js';
import { hasRows } from '../model/subjects.js';
import { pageOfView } from '../render/html/view.js';
import { compareView } from '../views/compare.js';
import { letter } from '../views/compare-sides.js';
import { alignedSteps, type Side } from './aligned-steps.js';
import { inScope } from './named-events.js';
import { Navigation } from './pages.js';
import { sessionPath } from './session-path.js';
import { once, type OpenSession } from './timeline/open-timelines.js';

/**
 * Waterfalls of sessions side by side, one step of each on one axis, and what differs.
 * @param step median, slowest or a number
 * @param scripts of a page with charts
 * @throws E_USAGE for fewer than two sessions
 */
export async function comparePage(
  openSessions: readonly OpenSession[],
  step: string,
  scripts: { clientScript: string; readingScript: string },
): Promise<string> {
  if (openSessions.length < 2)
    throw new InferscopeError('E_USAGE', {
      what: 'A comparison needs two sessions',
      why: `${openSessions.length} chosen.`,
      fix: 'Choose two in the list of sessions.',
    });
  const compared = await compareSessions(openSessions.map(({ session }) => session));
  const view = compareView(compared, (index, name) => {
    const { key, session } = openSessions[index]!;
    if (name === undefined) return sessionPath(key);
    return hasRows(session.manifest, 'kernels')
      ? `${sessionPath(key, '/kernels')}?${new URLSearchParams({ name })}#chosen`
      : undefined;
  });
  const choice = choiceOf(step);
  const sides = await Promise.all(
    openSessions.map((openSession, index) => sideOf(openSession, index, choice)),
  );
  const steps = alignedSteps(sides, {
    choice,
    choose: (chosen) =>
      `/compare?${[...openSessions.map(({ key }) => `s=${encodeURIComponent(key)}`), `step=${chosen}`].join('&')}#steps`,
    clean: compared.data.waterfalls.some(({ profiled }) => !profiled),
  });
  const [first, ...otherSections] = view.sections;
  const sections = first && steps ? [first, steps, ...otherSections] : view.sections;
  return pageOfView({ ...view, sections }, { ...scripts, navigation: <Navigation current="" /> });
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
