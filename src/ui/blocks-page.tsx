import type { Child } from 'hono/jsx';
import { SectionOfPage } from '../render/html/view.js';
import type { Section } from '../views/block.js';
import { pagesOfSession } from './open-session-pages.js';
import { html, Shell } from './pages.js';
import { sessionPath } from './session-path.js';
import type { OpenSession } from './timeline/open-timelines.js';

/** A page of a session made of the blocks that reports use. @param lead shown above them */
export function pageOfBlocks(
  openSession: OpenSession,
  title: string,
  path: string,
  sections: readonly Section[],
  lead?: Child,
): string {
  const session = pagesOfSession(openSession);
  return html(
    <Shell
      title={`${title}: ${session.title}`}
      navigation={{ session, current: sessionPath(openSession.key, path) }}
      script="report-client.js"
    >
      <h1 class="unseen">{title}</h1>
      {lead}
      {sections.map((section) => (
        <SectionOfPage section={section} />
      ))}
    </Shell>,
  );
}
