import type { Context } from 'hono';
import { readMemoryOverTime } from '../facts/memory-profile/over-time.js';
import { hasRows } from '../model/subjects.js';
import { tableNames } from '../model/tables.js';
import { describedTables } from '../session/table-schema.js';
import { gemmsPage } from './gemms-of-session.js';
import { memorySections, noMemory } from './memory-page.js';
import { kernels, operators } from './named-events.js';
import type { TableState } from './named-page.js';
import { pageOfBlocks } from './blocks-page.js';
import { pagesOfSession, withDatabase } from './open-session-pages.js';
import { sqlPage } from './pages.js';
import { ranksOfSession } from './session-ranks.js';
import { loadsOf, requestsOfSession } from './session-requests.js';
import { noTimeline } from './timeline-parts.js';
import { once, type OpenSession } from './timeline/open-timelines.js';

type SessionPage = (openSession: OpenSession, context: Context) => string | Promise<string>;

/** The HTML of each page of a session except overview and timeline, by the last part of its path. */
export const sessionPages = {
  '/kernels': (openSession, context) => kernels(openSession, tableState(context)),
  '/operators': (openSession, context) => operators(openSession, tableState(context)),
  '/gemms': (openSession, context) => gemmsPage(openSession, context.req.query('shape') ?? ''),
  '/ranks': async (openSession, context) => {
    const sections = await ranksOfSession(openSession, context.req.query('of') ?? '');
    return pageOfBlocks(openSession, 'Ranks', '/ranks', sections);
  },
  '/requests': async (openSession, context) => {
    const { execution, from } = context.req.query();
    const sections = await requestsOfSession(openSession, { execution, from: Number(from) || 0 });
    return pageOfBlocks(openSession, 'Requests', '/requests', sections);
  },
  '/memory': async (openSession) => {
    const { session } = openSession;
    const series = await once(openSession, 'memory', () => withDatabase(session, readMemoryOverTime));
    const sections =
      series.length > 0
        ? memorySections(series, session.manifest, (await loadsOf(openSession)).labels)
        : [noMemory];
    return pageOfBlocks(openSession, 'Memory', '/memory', sections);
  },
  '/sql': (openSession) => {
    const { manifest } = openSession.session;
    const first =
      ['stages', 'kernels', 'requests', ...tableNames].find((name) => hasRows(manifest, name)) ?? 'stages';
    return sqlPage(pagesOfSession(openSession), describedTables(), first);
  },
} satisfies Record<string, SessionPage>;

export const pageWithoutTimeline = (openSession: OpenSession): string =>
  pageOfBlocks(openSession, 'Timeline', '/timeline', [noTimeline]);

/** Reads sort, filter, selection and page from the URL of a table of events. */
function tableState(context: Context): TableState {
  const query = (name: string): string => context.req.query(name) ?? '';
  return { sort: query('sort'), filter: query('q'), chosen: query('name'), page: Number(query('page')) };
}
