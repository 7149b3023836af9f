import type { Child, FC } from 'hono/jsx';
import type { Document } from '../../model/document.js';
import type { ExplainResult, WhatIfResult } from '../../model/documents/explain.js';
import { Page } from './page.js';
import { Blocks } from './blocks.js';
import type { Section, View } from '../../views/block.js';
import { withExplanation } from '../../views/explain.js';
import type { Places } from '../../views/findings.js';
import { safeText } from '../safe-text.js';

interface PageOptions {
  /** Text of dist/report-client.js, which draws the charts. */
  clientScript: string;
  /** Text of dist/report-reading.js, for a page without charts. */
  readingScript?: string;
  /** Explanation shown first: sentences, waterfall, findings. */
  explain?: Document<ExplainResult> | null;
  /** Shown at the top if the page is one of several. */
  navigation?: Child;
  /** Links of findings and bars to their places. */
  places?: Places;
  /** Predictions shown in the waterfalls. */
  whatIf?: WhatIfResult;
  /** Run after the other scripts. */
  moreScripts?: readonly string[];
  /** Whether its scripts may send requests to their server. */
  asks?: boolean;
  /** A section before the others, with its script. */
  drawn?: { id: string; title: string; content: Child; script: string };
}

/** A view as one page without external files. */
export function pageOfView(
  view: View,
  { explain = null, places, whatIf, drawn, moreScripts = [], ...page }: PageOptions,
): string {
  const { session, document, title, command, lead, sections } = withExplanation(view, explain, {
    places,
    whatIf,
  });
  // Findings are to the right of their waterfall.
  const halves = sections
    .filter(({ half }) => half)
    .toSorted((a, b) => Number(a.id === 'findings') - Number(b.id === 'findings'));
  const html = (
    <Page
      title={`${title} · inferscope`}
      contents={[{ id: 'summary', title: 'Summary' }, ...(drawn ? [drawn] : []), ...sections]}
      moreScripts={drawn ? [drawn.script, ...moreScripts] : moreScripts}
      data={document}
      {...page}
    >
      <header id="summary">
        <p class="kicker">
          inferscope {command} · {session.id ?? 'not saved'} ·{' '}
          {session.started_at.slice(0, 16).replace('T', ' ')} UTC
        </p>
        <h1>{title}</h1>
        <Blocks blocks={lead} />
        <noscript>
          <p>The charts need JavaScript; every chart has its numbers in a table below it.</p>
        </noscript>
      </header>
      {halves.length > 0 && (
        <div class="halves">
          {halves.map((section) => (
            <SectionOfPage section={section} />
          ))}
        </div>
      )}
      {drawn && (
        <section id={drawn.id} aria-labelledby={`${drawn.id}-title`}>
          <h2 id={`${drawn.id}-title`}>{drawn.title}</h2>
          {drawn.content}
        </section>
      )}
      {sections
        .filter(({ half }) => !half)
        .map((section) => (
          <SectionOfPage section={section} />
        ))}
      <footer>
        inferscope {document.tool_version} · session {session.id ?? 'not saved'} · {session.started_at} · the
        page holds its data as {document.schema} JSON in <code>#profile-data</code>
      </footer>
    </Page>
  );
  return `<!DOCTYPE html>\n${String(html)}\n`;
}

/** One section of a page as HTML; null if the page has no such section. */
export function sectionOfView(
  view: View,
  id: string,
  { explain = null, places, whatIf }: Pick<PageOptions, 'explain' | 'places' | 'whatIf'>,
): string | null {
  const found = withExplanation(view, explain, { places, whatIf }).sections.find(
    (section) => section.id === id,
  );
  return found ? safeText(String(<SectionOfPage section={found} />)) : null;
}

/** A section with its heading. */
export const SectionOfPage: FC<{ section: Section }> = ({ section: { id, title, blocks } }) => (
  <section id={id} aria-labelledby={`${id}-title`}>
    <h2 id={`${id}-title`}>
      <a href={`#${id}`}>{title}</a>
    </h2>
    <Blocks blocks={blocks} under={title} />
  </section>
);
