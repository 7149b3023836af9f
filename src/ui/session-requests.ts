import { type AnalyzedSession, analyzeSession } from '../facts/session-document.js';
import { readExecutionsWithRequests, readRequests } from '../facts/serving/requests-over-time.js';
import { leadOf } from '../model/subjects.js';
import type { Session } from '../session/open.js';
import type { Section } from '../views/block.js';
import { viewOf } from '../views/registry.js';
import { latencyByLoad } from '../views/serving-series.js';
import { loadLabel } from '../vocabulary/loads.js';
import { withDatabase } from './open-session-pages.js';
import { noRequests, requestSections } from './requests-page.js';
import { sessionPath } from './session-path.js';
import { once, type OpenSession } from './timeline/open-timelines.js';

/** Latency against load, if the session has several loads, and the requests of one of them. */
export async function requestsOfSession(
  openSession: OpenSession,
  selection: { execution: string | undefined; from: number },
): Promise<Section[]> {
  const { session } = openSession;
  const executions = await once(openSession, 'loads', () =>
    withDatabase(session, readExecutionsWithRequests),
  );
  const execution = executions.find((load) => load === selection.execution) ?? executions[0];
  if (execution === undefined) return [noRequests];
  const [byLoad, found] = await Promise.all([
    loadsOf(openSession),
    once(openSession, `requests ${execution}`, () =>
      withDatabase(session, (database) => readRequests(database, execution)),
    ),
  ]);
  const path = sessionPath(openSession.key, '/requests');
  const linkTo = (load: string, from?: number): string =>
    `${path}?${new URLSearchParams({ execution: load, ...(from === undefined ? {} : { from: String(from) }) })}${
      from === undefined ? '' : '#gantt'
    }`;
  const nameOf = (load: string): string => byLoad.names.get(load) ?? load;
  return [
    ...byLoad.sections,
    ...requestSections(found, {
      execution,
      executions,
      linkTo,
      nameOf,
      from: selection.from,
      others: `inferscope sql ${session.id} "SELECT * FROM requests"`,
    }),
  ];
}

/** The section on latency against load of a load test or of result files, and the label of each load. */
export const loadsOf = (openSession: OpenSession): Promise<Loads> =>
  once(openSession, 'latency by load', () => computeLoads(openSession.session));

interface Loads {
  sections: Section[];
  names: Map<string, string>;
}

async function computeLoads(session: Session): Promise<Loads> {
  const lead = leadOf(session.manifest);
  if (lead !== 'load' && lead !== 'results') return { sections: [], names: new Map() };
  const analyzed = await analyzeSession(session);
  const names = loadNames(analyzed);
  const { sections } = await viewOf(analyzed);
  return { sections: names.size === 1 ? [] : sections.filter(({ id }) => id === latencyByLoad), names };
}

/** The label of each load, by execution; empty for a session without loads. */
export const loadNames = (analyzed: AnalyzedSession): Map<string, string> =>
  new Map(
    analyzed.kind === 'serving'
      ? analyzed.document.data.points.map(({ execution_id: id, load }) => [id, loadLabel(load)])
      : [],
  );
