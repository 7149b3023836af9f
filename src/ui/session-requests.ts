import { type AnalyzedSession, analyzeSession } from '../facts/session-document.js';
import { readExecutionsWithRequests, readRequests } from '../facts/serving/requests-over-time.js';
import { leadOf } from '../model/subjects.js';
import type { Session } from '../session/open.js';
import type { Section } from '../views/block.js';
import { viewOf } from '../views/registry.js';
import { latencySectionId } from '../views/serving-series.js';
import { loadLabel } from '../vocabulary/loads.js';
import { withDatabase } from './open-session-pages.js';
import { noRequests, requestSections } from './requests-page.js';
import { sessionPath } from './session-path.js';
import { once, type OpenSession } from './timeline/open-timelines.js';

/** Latency against load, if the session has several loads, and the requests of one of them. */
export async function requestsOfSession(
  openSession: OpenSession,
  /** `from`: index of the first request in the chart. */
  selection: { execution: string | undefined; from: number },
): Promise<Section[]> {
  const { session } = openSession;
  const executions = await once(openSession, 'executions with requests', () =>
    withDatabase(session, readExecutionsWithRequests),
  );
  const execution = executions.find((id) => id === selection.execution) ?? executions[0];
  if (execution === undefined) return [noRequests];
  const [byLoad, found] = await Promise.all([
    loadsOf(openSession),
    once(openSession, `requests ${execution}`, () =>
      withDatabase(session, (database) => readRequests(database, execution)),
    ),
  ]);
  const path = sessionPath(openSession.key, '/requests');
  const linkTo = (id: string, from?: number): string => {
    const query = new URLSearchParams({ execution: id });
    if (from === undefined) return `${path}?${query}`;
    query.set('from', String(from));
    return `${path}?${query}#gantt`;
  };
  const labelOf = (id: string): string => byLoad.labels.get(id) ?? id;
  return [
    ...byLoad.sections,
    ...requestSections(found, {
      execution,
      executions,
      linkTo,
      nameOf: labelOf,
      from: selection.from,
      others: `inferscope sql ${session.id} "SELECT * FROM requests"`,
    }),
  ];
}

/** The section on latency against load of a load test or of result files, and the label of each load. */
export const loadsOf = (openSession: OpenSession): Promise<Loads> =>
  once(openSession, 'loads', () => computeLoads(openSession.session));

interface Loads {
  sections: Section[];
  /** By execution. */
  labels: Map<string, string>;
}

async function computeLoads(session: Session): Promise<Loads> {
  const lead = leadOf(session.manifest);
  if (lead !== 'load' && lead !== 'results') return { sections: [], labels: new Map() };
  const analyzed = await analyzeSession(session);
  const labels = loadLabels(analyzed);
  const { sections } = await viewOf(analyzed);
  return { sections: labels.size === 1 ? [] : sections.filter(({ id }) => id === latencySectionId), labels };
}

/** The label of each load, by execution; empty for a session without loads. */
export const loadLabels = (analyzed: AnalyzedSession): Map<string, string> =>
  new Map(
    analyzed.kind === 'serving'
      ? analyzed.document.data.points.map(({ execution_id: id, load }) => [id, loadLabel(load)])
      : [],
  );
