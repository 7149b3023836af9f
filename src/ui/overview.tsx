import { readFile } from 'node:fs/promises';
import { analyzeAndExplain } from '../advice/explain/session-explanation.js';
import { predictStages, measuredStages } from '../advice/what-if/what-if.js';
import { documentsOf } from '../facts/session-document.js';
import { childEntry } from '../model/installation.js';
import { pageOfView } from '../render/html/view.js';
import type { Places } from '../views/findings.js';
import { viewOf } from '../views/registry.js';
import { eventLinks } from './event-links.js';
import { pagesOfSession } from './open-session-pages.js';
import { failurePage, Navigation } from './pages.js';
import { placeQuery, placesOf } from './places.js';
import { reportScripts } from './report-scripts.js';
import { sessionPath } from './session-path.js';
import { once, type OpenSession } from './timeline/open-timelines.js';
import type { EventLinks } from './timeline/shown.js';
import { offeredFor, WhatIfSwitches } from './what-if-switches.js';

/** The analysis of a session, with the place of each finding and bar in its timeline. */
export const explained = (openSession: OpenSession) =>
  once(openSession, 'overview', async () => {
    const { session, executions } = openSession;
    openSession.doing = 'summing up times';
    try {
      const explained = await analyzeAndExplain(session, () => (openSession.doing = 'looking for causes'));
      openSession.doing = 'finding places in the timeline';
      return {
        ...explained,
        ...(executions.length > 0 ? { places: await linksOf(openSession, explained) } : {}),
      };
    } finally {
      openSession.doing = null;
    }
  });

/**
 * The report of a session with its what-if switches.
 * @param chosen changes that are switched on
 */
export async function overviewPage(openSession: OpenSession, chosen: readonly string[]): Promise<string> {
  const { session } = openSession;
  const { analyzed, explain, places } = await explained(openSession);
  const path = sessionPath(openSession.key);
  const offered = offeredFor(session, explain?.data);
  const hasSwitches = offered.length > 0 || chosen.length > 0;
  const navigation = (
    <>
      <Navigation
        session={pagesOfSession(openSession)}
        current={path}
        file={`${sessionPath(openSession.key, '/api/file')}?${new URLSearchParams(chosen.length > 0 ? { 'what-if': chosen.join(',') } : {})}`}
      />
      {hasSwitches && (
        <WhatIfSwitches
          chosen={chosen}
          offered={offered}
          linkTo={(changes) =>
            changes.length === 0 ? path : `${path}?${new URLSearchParams({ 'what-if': changes.join(',') })}`
          }
        />
      )}
    </>
  );
  if (documentsOf(analyzed).length === 0)
    return failurePage({
      what: 'This session has nothing to sum up',
      why: 'It has no operators, kernels, counters, GEMMs, benchmark, load test, results or samples.',
      fix: 'Its tables can be queried on the page SQL.',
    });
  const measured =
    explain !== null && chosen.length > 0
      ? await once(openSession, 'what if', () => measuredStages(session, { withRules: true }))
      : null;
  return pageOfView(await viewOf(analyzed, places), {
    ...(await reportScripts()),
    explain,
    navigation,
    ...(places ? { places } : {}),
    ...(measured ? { whatIf: predictStages(session, measured, chosen).data } : {}),
    ...(hasSwitches ? { moreScripts: [await readFile(childEntry('ui-what-if'), 'utf8')], asks: true } : {}),
  });
}

/** Links from the events of a session back to its bars and findings. */
export async function linksOfEvents(openSession: OpenSession): Promise<EventLinks> {
  const { explain } = await explained(openSession);
  return explain === null ? {} : eventLinks(explain.data, sessionPath(openSession.key));
}

async function linksOf(
  openSession: OpenSession,
  explained: Awaited<ReturnType<typeof analyzeAndExplain>>,
): Promise<Places> {
  const database = await openSession.session.connect();
  try {
    return await placesOf(openSession.session, database, explained, (place) => {
      const query = new URLSearchParams([['execution', place.execution], ...placeQuery(place)]);
      return `${sessionPath(openSession.key, '/timeline')}?${query}`;
    });
  } finally {
    await database.close();
  }
}
