import { raw } from 'hono/html';
import type { Child, FC, PropsWithChildren } from 'hono/jsx';
import { safeText } from '../render/safe-text.js';
import { inlineJson } from '../render/html/inline.js';
import { style } from '../render/html/style.js';
import { letter } from '../views/compare-sides.js';
import { plural } from '../vocabulary/format.js';
import { comparePath, sessionPath } from './session-path.js';
import { uiStyle } from './style.js';
import { TimelineParts } from './timeline-parts.js';

/** Id, title and pages of a session. */
export interface SessionNamed {
  /** Key of the session in URLs. */
  key: string;
  id: string;
  title: string;
  /** Pages that have data: last part of the path, and label. */
  pages: readonly { path: string; label: string }[];
}

export interface NavigationProps {
  session?: SessionNamed;
  /** Sessions that the open page compares. */
  compared?: readonly SessionNamed[];
  /** Path of the open page. */
  current: string;
  /** Link that saves the page as a file; without it a script saves what the page shows. */
  file?: string;
}

const saveTitle = 'what this page shows, as one HTML file that opens without a server';

/** Links to the pages of a session. */
export const Navigation: FC<NavigationProps> = ({ session, compared, current, file }) => {
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
          {session.pages.map(({ path, label }) => link(sessionPath(session.key, path), label))}
        </>
      )}
      {compared && (
        <>
          {compared.map(({ key, title }, index) => (
            <>
              <strong>{letter(index)}</strong>
              {link(sessionPath(key), safeText(title))}
            </>
          ))}
          {link(comparePath(compared.toReversed()), 'Swap')}
        </>
      )}
      {(session ?? compared) && (
        <a id="save" href={file ?? '#save'} title={saveTitle}>
          Save as one file
        </a>
      )}
    </nav>
  );
};

interface ShellProps {
  title: string;
  navigation: NavigationProps;
  /** Script in /assets that runs after the page has loaded. */
  script?: string;
  /** Data attributes that the script reads. */
  data?: Record<string, string>;
  wide?: boolean;
  /** Whether the page reloads itself every second. */
  again?: boolean;
}

/** A page with its navigation. */
export const Shell: FC<PropsWithChildren<ShellProps>> = ({
  title,
  navigation,
  script,
  data = {},
  wide = false,
  again = false,
  children,
}) => (
  <html lang="en">
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="color-scheme" content="light dark" />
      <link rel="icon" href="data:," />
      {again && <meta http-equiv="refresh" content="1" />}
      <title>{safeText(title)} · inferscope</title>
      <style>{raw(style)}</style>
      {script && <script src={`/assets/${script}`} defer></script>}
      {(navigation.session ?? navigation.compared) && <script src="/assets/ui-save.js" defer></script>}
    </head>
    <body {...Object.fromEntries(Object.entries(data).map(([name, value]) => [`data-${name}`, value]))}>
      <Navigation {...navigation} />
      <main id="page" class={wide ? 'wide' : 'narrow'}>
        {children}
      </main>
    </body>
  </html>
);

/** The HTML text of a page. */
export const html = (page: Child): string => `<!DOCTYPE html>\n${String(page)}\n`;

export const timelinePage = (
  session: SessionNamed,
  executions: readonly string[],
  execution: string,
): string =>
  html(
    <Shell
      title={`Timeline: ${session.title}`}
      navigation={{
        session,
        current: sessionPath(session.key, '/timeline'),
        file: `${sessionPath(session.key, '/api/file')}?${new URLSearchParams({ execution })}`,
      }}
      script="ui-timeline.js"
      data={{ api: sessionPath(session.key, '/api'), execution }}
      wide
    >
      <h1 class="unseen">Timeline</h1>
      <TimelineParts
        executions={executions}
        execution={execution}
        trace={sessionPath(session.key, `/api/trace?execution=${encodeURIComponent(execution)}`)}
      />
    </Shell>,
  );

/** The documentation of a table or column, with `code` between backticks. */
const Doc: FC<{ text: string }> = ({ text }) => (
  <>{text.split('`').map((part, index) => (index % 2 === 1 ? <code>{part}</code> : part))}</>
);

/** @param first table of the query that is shown first */
export const sqlPage = (session: SessionNamed, schema: readonly TableDescribed[], first: string): string =>
  html(
    <Shell
      title={`SQL: ${session.title}`}
      navigation={{ session, current: sessionPath(session.key, '/sql') }}
      script="ui-sql.js"
      data={{ api: sessionPath(session.key, '/api'), query: `SELECT * FROM ${first} LIMIT 20` }}
    >
      <section>
        <h1>SQL</h1>
        <form id="query">
          <div id="editor"></div>
          <p class="tools">
            <button type="submit">Run (Ctrl Enter)</button>
            <button type="button" id="csv" disabled>
              Save as CSV
            </button>
            <output id="answered"></output>
          </p>
        </form>
        <script type="application/json" id="schema">
          {raw(inlineJson(schema))}
        </script>
        <div id="answer" class="scroll" tabindex={0} role="group" aria-label="answer"></div>
      </section>
      <section>
        <h2>Tables</h2>
        {schema.map(({ name, doc, columns }) => (
          <details>
            <summary>
              <code>{name}</code> <Doc text={doc} />
            </summary>
            <dl class="definitions">
              {columns.map((column) => (
                <>
                  <dt>
                    <code>{column.name}</code> <span class="spread">{column.type}</span>
                  </dt>
                  <dd>
                    <Doc text={column.doc} />
                  </dd>
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

interface Waiting {
  session: SessionNamed;
  /** The current step of the computation; null if the page has only one. */
  doing: string | null;
  rows: number;
  seconds: number;
}

/** Shown while a slow page is computed. */
export const waitingPage = ({ session, doing, rows, seconds }: Waiting): string =>
  html(
    <Shell title={session.title} navigation={{ session, current: '' }} again>
      <section>
        <h1>{safeText(session.title)}</h1>
        <p role="status">
          {doing ?? 'reading'} · {seconds} s · {plural(rows, 'row')}
        </p>
        <p>The page appears when it is complete; it is computed once.</p>
      </section>
    </Shell>,
  );

/** An error page: what failed, why, and what to do. What failed may start with a name, so it keeps its case. */
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
