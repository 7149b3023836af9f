import { readFile } from 'node:fs/promises';
import { Hono, type Context } from 'hono';
import { compress } from 'hono/compress';
import { etag } from 'hono/etag';
import { analyzeAndExplain } from '../advice/explain/session-explanation.js';
import { predictStages, measuredStages } from '../advice/what-if/what-if.js';
import { derivedOf } from '../facts/derived/queries.js';
import { documentsOf } from '../facts/session-document.js';
import { InferscopeError } from '../model/errors.js';
import { childEntry } from '../model/installation.js';
import { requestGuard } from '../model/request-guard.js';
import { pageOfView } from '../render/html/view.js';
import { sessionTables } from '../session/open.js';
import { defaultSqlLimits, runSql } from '../session/sql-run.js';
import type { Places } from '../views/findings.js';
import { viewOf } from '../views/registry.js';
import { pagePolicy, revalidated, securityHeaders, tokenGuard } from './guard.js';
import { comparePage } from './compare-page.js';
import { eventLinks } from './event-links.js';
import type { Homes } from './homes.js';
import { pagesOfSession } from './open-session-pages.js';
import { placeQuery, placesOf } from './places.js';
import { exportedPage, type SavedView } from './export-page.js';
import { failurePage, Navigation, waitingPage } from './pages.js';
import { showWaiting } from './show-waiting.js';
import { sessionPages } from './session-pages.js';
import { sessionPath } from './session-path.js';
import { sessionsPage, sessionsTable } from './sessions-page.js';
import { offeredFor, WhatIfSwitches } from './what-if-switches.js';
import { timelineApi } from './timeline/api.js';
import type { EventLinks } from './timeline/shown.js';
import { once, OpenSessions, type OpenSession } from './timeline/open-timelines.js';

const assets = ['ui-save.js', 'ui-sessions.js', 'ui-timeline.js', 'ui-sql.js', 'report-client.js'];

const maxSqlRows = 10_000;

export interface UiOptions {
  homes: Homes;
  /** Host name that the server listens on, as typed. */
  host: string;
  token: string;
  /** Key of the session that is opened first: its overview is computed while the browser starts. */
  first: string | null;
  /** Logs unexpected errors, and what the export of a trace changed or left out. */
  log: (error: unknown) => void;
}

/** The pages of `inferscope ui`: read-only; a session is addressed by its id, never by a path. */
export function uiApp({ homes, host, token, first, log }: UiOptions): Hono {
  const app = new Hono();
  const opened = new OpenSessions(homes);
  // Pages through a tunnel to the machine with the GPU: a fifth of the bytes. A saved trace and tiles stay as they are.
  app.use(compress({ contentTypeFilter: /^text\// }));
  app.use(securityHeaders);
  app.use(requestGuard(host, ({ status, message }) => new Response(`${message}\n`, { status })));
  app.use(tokenGuard(token));
  app.onError((error, context) => failedPage(context, error, log));
  app.use(
    '/s/:id/*',
    showWaiting(app, async (context, seconds) => {
      const openSession = await opened.get(context.req.param('id')!);
      const files = Object.values(openSession.session.manifest.tables).flat();
      const rows = files.reduce((sum, file) => sum + file.rows, 0);
      return page(
        context,
        waitingPage({ session: pagesOfSession(openSession), doing: openSession.doing, rows, seconds }),
      );
    }),
  );
  app.notFound((context) => context.text('There is no such page.\n', 404));

  app.use('/assets/*', etag());
  app.get('/assets/:name', async (context) => {
    const name = assets.find((asset) => asset === context.req.param('name'));
    if (name === undefined) return context.notFound();
    const text = await readFile(childEntry(name.replace(/\.js$/, '')), 'utf8');
    return context.body(text, 200, {
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': revalidated,
    });
  });
  app.get('/', (context) => page(context, sessionsPage(homes.list())));
  app.get('/sessions', (context) => context.html(sessionsTable(homes.list())));
  app.get('/compare', async (context) => {
    const openSessions: OpenSession[] = [];
    for (const id of context.req.queries('s') ?? []) openSessions.push(await opened.get(id));
    return reportPage(
      context,
      await comparePage(openSessions, context.req.query('step') ?? '', {
        ...(await scripts()),
        moreScripts: [await readFile(childEntry('ui-save'), 'utf8')],
      }),
    );
  });
  app.get('/s/:id', async (context) => {
    const openSession = await opened.get(context.req.param('id'));
    return reportPage(context, await overview(openSession, context.req.query('what-if')));
  });
  for (const [path, pageOf] of Object.entries(sessionPages))
    app.get(`/s/:id${path}`, async (context) =>
      page(context, await pageOf(await opened.get(context.req.param('id')!), context)),
    );
  app.get('/s/:id/api/sql', async (context) => {
    const { session } = await opened.get(context.req.param('id'));
    const limits = { ...defaultSqlLimits, maxRows: maxSqlRows };
    const query = context.req.query('q') ?? '';
    return context.json(
      await runSql(childEntry('sql-child'), [sessionTables(session)], query, limits, derivedOf([session])),
    );
  });
  app.get('/s/:id/api/file', async (context) => {
    const openSession = await opened.get(context.req.param('id'));
    const { html, note } = await exportedPage(openSession.session, { view: savedView(context, openSession) });
    if (note !== null) log(note);
    return context.html(html, 200, {
      'content-disposition': `attachment; filename*=UTF-8''${encodeURIComponent(openSession.session.id)}.html`,
    });
  });
  app.route('/s/:id/api', timelineApi(opened, log, linksOfEvents));
  // A failure is shown by the page, which computes it again.
  if (first !== null)
    opened
      .get(first)
      .then(async (openSession) => {
        await opened.readAhead(openSession);
        await explained(openSession);
      })
      .catch(() => {});
  return app;
}

function page(context: Context, html: string, status: 200 | 400 | 404 = 200): Response {
  return context.html(html, status, { 'content-security-policy': pagePolicy });
}

/** Sends a page that has its own content security policy for its inline scripts. */
const reportPage = (context: Context, html: string): Response | Promise<Response> =>
  context.html(html, 200, { 'content-security-policy': "frame-ancestors 'none'" });

async function scripts() {
  const text = (entry: string) => readFile(childEntry(entry), 'utf8');
  return { clientScript: await text('report-client'), readingScript: await text('report-reading') };
}

/** The analysis of a session, with the place of each finding and bar in its timeline. */
const explained = (openSession: OpenSession) =>
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

async function overview(openSession: OpenSession, query: string | undefined): Promise<string> {
  const { session } = openSession;
  const { analyzed, explain, places } = await explained(openSession);
  const path = sessionPath(openSession.key);
  const chosen = changesIn(query);
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
    ...(await scripts()),
    explain,
    navigation,
    ...(places ? { places } : {}),
    ...(measured ? { whatIf: predictStages(session, measured, chosen).data } : {}),
    ...(hasSwitches ? { moreScripts: [await readFile(childEntry('ui-what-if'), 'utf8')], asks: true } : {}),
  });
}

async function linksOfEvents(openSession: OpenSession): Promise<EventLinks> {
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

/** The state of the page that a file is saved from: that of a timeline names an execution. */
function savedView(context: Context, { executions }: OpenSession): SavedView {
  const timeline = new URL(context.req.url).searchParams;
  const execution = executions.find((id) => id === timeline.get('execution'));
  const whatIf = changesIn(timeline.get('what-if'));
  if (execution === undefined) return { whatIf };
  timeline.delete('execution');
  return { execution, timeline, whatIf };
}

const changesIn = (query: string | null | undefined): string[] =>
  (query ?? '').split(',').filter((change) => change !== '');

function failedPage(context: Context, error: unknown, log: UiOptions['log']): Response {
  const known = error instanceof InferscopeError;
  const { what, why, fix } = known
    ? error.parts
    : {
        what: 'inferscope failed here',
        why: String(error),
        fix: 'inferscope ui printed more in its terminal.',
      };
  if (!known) log(error);
  const status = known ? (error.code === 'E_SESSION_NOT_FOUND' ? 404 : 400) : 500;
  const isNavigation = context.req.header('accept')?.includes('text/html');
  if (context.req.path.includes('/api/') && !isNavigation) return context.json({ what, why, fix }, status);
  return context.html(failurePage({ what, why, fix }), status, { 'content-security-policy': pagePolicy });
}
