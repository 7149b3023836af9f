import { raw } from 'hono/html';
import type { Child, FC, PropsWithChildren } from 'hono/jsx';
import type { ListedSession } from '../session/list.js';
import { safeText } from '../render/safe-text.js';
import { style } from '../render/html/style.js';
import { formatBytes } from '../vocabulary/format.js';
import { sessionPath } from './session-path.js';
import { uiStyle } from './style.js';
import { TimelineParts } from './timeline-parts.js';

/** A session as pages name it. */
export interface SessionNamed {
  id: string;
  title: string;
  hasKernels: boolean;
}

export interface NavigationProps {
  session?: SessionNamed;
  /** Path of the page that is open. */
  current: string;
  hasTimeline?: boolean;
}

/** Links to the pages of a session. */
export const Navigation: FC<NavigationProps> = ({ session, current, hasTimeline = false }) => {
  const link = (href: string, text: string) => (
    <a href={href} {...(href === current ? { 'aria-current': 'page' } : {})}>
      {text}
    </a>
  );
  return (
    <nav class="pages" aria-label="Pages">
      <style>{raw(uiStyle)}</style>
      {link('/', 'Sessions')}
      {session && (
        <>
          <strong title={session.id}>{safeText(session.title)}</strong>
          {link(sessionPath(session.id), 'Overview')}
          {hasTimeline && link(sessionPath(session.id, '/timeline'), 'Timeline')}
          {session.hasKernels && link(sessionPath(session.id, '/kernels'), 'Kernels')}
          {link(sessionPath(session.id, '/operators'), 'Operators')}
          {link(sessionPath(session.id, '/gemms'), 'GEMMs')}
          {link(sessionPath(session.id, '/requests'), 'Requests')}
          {link(sessionPath(session.id, '/memory'), 'Memory')}
          {link(sessionPath(session.id, '/sql'), 'SQL')}
        </>
      )}
    </nav>
  );
};

interface ShellProps {
  title: string;
  navigation: NavigationProps;
  /** Of /assets, run when the page is there. */
  script?: string;
  /** What the script starts with. */
  data?: Record<string, string>;
  wide?: boolean;
}

/** A page with its navigation. */
export const Shell: FC<PropsWithChildren<ShellProps>> = ({
  title,
  navigation,
  script,
  data = {},
  wide = false,
  children,
}) => (
  <html lang="en">
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="color-scheme" content="light dark" />
      <link rel="icon" href="data:," />
      <title>{safeText(title)} · inferscope</title>
      <style>{raw(style)}</style>
      {script && <script src={`/assets/${script}`} defer></script>}
    </head>
    <body {...Object.fromEntries(Object.entries(data).map(([name, value]) => [`data-${name}`, value]))}>
      <Navigation {...navigation} />
      <main id="page" class={wide ? 'wide' : 'narrow'}>
        {children}
      </main>
    </body>
  </html>
);

/** The text of a page. */
export const html = (page: Child): string => `<!DOCTYPE html>\n${String(page)}\n`;

/** All sessions, the newest first; a script adds those that come and hides those that a filter does not match. */
export const sessionsPage = (sessions: readonly ListedSession[]): string =>
  html(
    <Shell title="Sessions" navigation={{ current: '/' }} script="ui-sessions.js">
      <section aria-labelledby="sessions">
        <h1 id="sessions">Sessions</h1>
        <form action="/compare" method="get">
          <p class="tools">
            <label class="filter">
              <input type="search" id="filter" placeholder="name, title, tag" /> filter
            </label>
            <button type="submit">Compare the chosen two</button>
          </p>
          <div id="list">
            <SessionsTable sessions={sessions} />
          </div>
        </form>
      </section>
    </Shell>,
  );

/** The table alone, for the script that follows new sessions. */
export const sessionsTable = (sessions: readonly ListedSession[]): string =>
  String(<SessionsTable sessions={sessions} />);

const SessionsTable: FC<{ sessions: readonly ListedSession[] }> = ({ sessions }) =>
  sessions.length === 0 ? (
    <p>
      No session yet: <code>inferscope profile</code> makes one, <code>inferscope import FILE</code> reads a
      capture. This page shows it when it is there.
    </p>
  ) : (
    <div class="scroll whole">
      <table class="sessions stacks">
        <thead>
          <tr>
            <th scope="col">
              <span class="unseen">compare</span>
            </th>
            <th scope="col">Session</th>
            <th scope="col">Headline</th>
            <th scope="col">Kind</th>
            <th scope="col">Started (UTC)</th>
            <th scope="col" class="number">
              Size
            </th>
          </tr>
        </thead>
        <tbody>
          {sessions.toReversed().map((one) => (
            <tr>
              <td>
                {one.broken === null && (
                  <input
                    type="checkbox"
                    name="s"
                    value={one.id}
                    aria-label={`compare ${safeText(one.name ?? one.id)}`}
                  />
                )}
              </td>
              <td class="wraps">
                {one.broken === null ? (
                  <a href={sessionPath(one.id)}>{safeText(one.name ?? one.id)}</a>
                ) : (
                  safeText(one.id)
                )}
                <span class="spread">
                  {' '}
                  {safeText([one.title ?? '', ...one.tags.map((tag) => `#${tag}`)].join(' '))}
                </span>
              </td>
              <td data-head="Headline">
                {one.broken === null ? safeText(one.headline ?? '') : safeText(one.broken.text)}
              </td>
              <td data-head="Kind">{one.kind}</td>
              <td data-head="Started (UTC)">{one.started_at?.slice(0, 16).replace('T', ' ')}</td>
              <td class="number" data-head="Size">
                {one.bytes === null ? '' : formatBytes(one.bytes)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );

export const timelinePage = (
  session: SessionNamed,
  executions: readonly string[],
  execution: string,
): string =>
  html(
    <Shell
      title={`Timeline: ${session.title}`}
      navigation={{ session, current: sessionPath(session.id, '/timeline'), hasTimeline: true }}
      script="ui-timeline.js"
      data={{ api: sessionPath(session.id, '/api'), execution }}
      wide
    >
      <h1 class="unseen">Timeline</h1>
      <TimelineParts
        executions={executions}
        execution={execution}
        trace={sessionPath(session.id, `/api/trace?execution=${encodeURIComponent(execution)}`)}
      />
    </Shell>,
  );

export const sqlPage = (
  session: SessionNamed,
  hasTimeline: boolean,
  schema: readonly TableDescribed[],
): string =>
  html(
    <Shell
      title={`SQL: ${session.title}`}
      navigation={{ session, current: sessionPath(session.id, '/sql'), hasTimeline }}
      script="ui-sql.js"
      data={{ api: sessionPath(session.id, '/api') }}
    >
      <section>
        <h1>SQL</h1>
        <form id="query">
          <textarea name="q" rows={6} spellcheck={false} aria-label="one SELECT statement"></textarea>
          <p class="tools">
            <button type="submit">Run (Ctrl Enter)</button>
            <button type="button" id="csv" disabled>
              Save as CSV
            </button>
            <output id="answered"></output>
          </p>
        </form>
        <div id="answer" class="scroll" tabindex={0} role="group" aria-label="answer"></div>
      </section>
      <section>
        <h2>Tables</h2>
        {schema.map(({ name, doc, columns }) => (
          <details>
            <summary>
              <code>{name}</code> {doc}
            </summary>
            <dl class="definitions">
              {columns.map((column) => (
                <>
                  <dt>
                    <code>{column.name}</code> <span class="spread">{column.type}</span>
                  </dt>
                  <dd>{column.doc}</dd>
                </>
              ))}
            </dl>
          </details>
        ))}
      </section>
    </Shell>,
  );

interface TableDescribed {
  name: string;
  doc: string;
  columns: readonly { name: string; type: string; doc: string }[];
}

/** What failed, why, and what to do. */
export const failurePage = (parts: { what: string; why: string; fix: string }): string =>
  html(
    <Shell title="Not shown" navigation={{ current: '' }}>
      <section>
        <h1>{safeText(parts.what)}</h1>
        <p>{safeText(parts.why)}</p>
        <p>{safeText(parts.fix)}</p>
      </section>
    </Shell>,
  );
