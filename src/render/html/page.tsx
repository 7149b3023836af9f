import type { Child, FC, PropsWithChildren } from 'hono/jsx';
import { raw } from 'hono/html';
import { safeText } from '../safe-text.js';
import { inlineJson, inlineScript } from './inline.js';
import { style } from './style.js';

interface PageProps {
  title: string;
  contents: { id: string; title: string }[];
  /** Stored once in the page, for the script that draws the charts and for readers who want the numbers. */
  data: unknown;
  clientScript: string;
  /** Used instead of `clientScript` on a page without charts. */
  readingScript?: string | undefined;
  /** Run after the client script. */
  moreScripts?: readonly string[];
  /** Whether its scripts may send requests to their server. */
  asks?: boolean;
  /** Shown at the top if the page is one of several. */
  navigation?: Child;
  children: Child;
}

const Contents: FC<{ entries: PageProps['contents'] }> = ({ entries }) => (
  <nav class="contents" aria-label="Contents">
    <p>Contents</p>
    <ul>
      {entries.map(({ id, title }) => (
        <li>
          <a href={`#${id}`}>{title}</a>
        </li>
      ))}
    </ul>
  </nav>
);

/** A page that opens offline: it loads nothing, and its policy forbids any loading. */
export const Page: FC<PropsWithChildren<PageProps>> = ({
  title,
  contents,
  data,
  clientScript,
  readingScript = clientScript,
  moreScripts = [],
  asks = false,
  navigation,
  children,
}) => {
  const body = safeText(String(<>{children}</>));
  const first = body.includes(' data-chart="') ? clientScript : readingScript;
  const scripts = [first, ...moreScripts].map((script) => inlineScript(script));
  const policy = [
    "default-src 'none'",
    `script-src ${scripts.map(({ cspSource }) => cspSource).join(' ')}`,
    "style-src 'unsafe-inline'",
    'img-src data:',
    ...(asks ? ["connect-src 'self'"] : []),
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="Content-Security-Policy" content={policy} />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="referrer" content="no-referrer" />
        <link rel="icon" href="data:," />
        <title>{safeText(title)}</title>
        <style>{raw(style)}</style>
      </head>
      <body>
        <a class="skip" href="#report">
          Skip to the report
        </a>
        {navigation}
        <div class="layout">
          <Contents entries={contents} />
          <main id="report">{raw(body)}</main>
        </div>
        <script type="application/json" id="profile-data">
          {raw(inlineJson(data))}
        </script>
        {scripts.map(({ text }) => (
          <script>{raw(text)}</script>
        ))}
      </body>
    </html>
  );
};
