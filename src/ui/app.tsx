import { readFile } from 'node:fs/promises';
import { Hono, type Context } from 'hono';
import { compress } from 'hono/compress';
import { etag } from 'hono/etag';
import { InferscopeError } from '../model/errors.js';
import { childEntry } from '../model/installation.js';
import { requestGuard } from '../model/request-guard.js';
import { sessionTables } from '../session/open.js';
import { pagePolicy, revalidated, securityHeaders, tokenGuard } from './guard.js';
import type { Homes } from './homes.js';
import { pagesOfSession } from './open-session-pages.js';
import type { SavedView } from './export-page.js';
import { failurePage, timelinePage, waitingPage } from './pages.js';
import { reportScripts } from './report-scripts.js';
import { showWaiting } from './show-waiting.js';
import { sessionsPage, sessionsTable } from './sessions-page.js';
import { timelineApi } from './timeline/api.js';
import { OpenSessions, type OpenSession } from './timeline/open-timelines.js';

const assets = ['ui-save.js', 'ui-sessions.js', 'ui-timeline.js', 'ui-sql.js', 'report-client.js'];

/** Pages other than overview and timeline: each imports its code when it is first opened, so that these two open sooner. */
const sessionPaths = ['/kernels', '/operators', '/gemms', '/ranks', '/requests', '/memory', '/sql'] as const;

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
  app.use(compress({ contentTypeFilter: /^(?:text\/|application\/json)/ }));
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
    const { comparePage } = await import('./compare-page.js');
    return reportPage(
      context,
      await comparePage(openSessions, context.req.query('step') ?? '', {
        ...(await reportScripts()),
        moreScripts: [await readFile(childEntry('ui-save'), 'utf8')],
      }),
    );
  });
  app.get('/s/:id', async (context) => {
    const openSession = await opened.get(context.req.param('id'));
    const { overviewPage } = await import('./overview.js');
    return reportPage(context, await overviewPage(openSession, changesIn(context.req.query('what-if'))));
  });
  app.get('/s/:id/timeline', async (context) => {
    const openSession = await opened.get(context.req.param('id'));
    const { executions } = openSession;
    const execution = executions.find((id) => id === context.req.query('execution')) ?? executions[0];
    if (execution !== undefined)
      return page(context, timelinePage(pagesOfSession(openSession), executions, execution));
    const { pageWithoutTimeline } = await import('./session-pages.js');
    return page(context, pageWithoutTimeline(openSession));
  });
  for (const path of sessionPaths)
    app.get(`/s/:id${path}`, async (context) => {
      const { sessionPages } = await import('./session-pages.js');
      return page(context, await sessionPages[path](await opened.get(context.req.param('id')!), context));
    });
  app.get('/s/:id/api/sql', async (context) => {
    const { session } = await opened.get(context.req.param('id'));
    const [{ defaultSqlLimits, runSql }, { derivedOf }] = await Promise.all([
      import('../session/sql-run.js'),
      import('../facts/derived/queries.js'),
    ]);
    const limits = { ...defaultSqlLimits, maxRows: maxSqlRows };
    const query = context.req.query('q') ?? '';
    return context.json(
      await runSql(childEntry('sql-child'), [sessionTables(session)], query, limits, derivedOf([session])),
    );
  });
  app.get('/s/:id/api/file', async (context) => {
    const openSession = await opened.get(context.req.param('id'));
    const { exportedPage } = await import('./export-page.js');
    const { html, note } = await exportedPage(openSession.session, { view: savedView(context, openSession) });
    if (note !== null) log(note);
    return context.html(html, 200, {
      'content-disposition': `attachment; filename*=UTF-8''${encodeURIComponent(openSession.session.id)}.html`,
    });
  });
  app.route(
    '/s/:id/api',
    timelineApi(opened, log, async (openSession) =>
      (await import('./overview.js')).linksOfEvents(openSession),
    ),
  );
  // A failure is shown by the page, which computes it again.
  if (first !== null) void openAhead(opened, first).catch(() => {});
  return app;
}

async function openAhead(opened: OpenSessions, first: string): Promise<void> {
  const openSession = await opened.get(first);
  await opened.readAhead(openSession);
  const { explained } = await import('./overview.js');
  await explained(openSession);
}

function page(context: Context, html: string, status: 200 | 400 | 404 = 200): Response {
  return context.html(html, status, { 'content-security-policy': pagePolicy });
}

/** Sends a page that has its own content security policy for its inline scripts. */
const reportPage = (context: Context, html: string): Response | Promise<Response> =>
  context.html(html, 200, { 'content-security-policy': "frame-ancestors 'none'" });

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
