import type { Child } from 'hono/jsx';
import { SectionOfPage } from '../render/html/view.js';
import type { Section } from '../views/block.js';
import { html, type SessionNamed, Shell } from './pages.js';

interface BlocksPage {
  session: SessionNamed;
  title: string;
  path: string;
  sections: readonly Section[];
  /** Shown above the sections. */
  lead?: Child;
}

/** A session's page made of the blocks that reports use. */
export const blocksPage = ({ session, title, path, sections, lead }: BlocksPage): string =>
  html(
    <Shell
      title={`${title}: ${session.title}`}
      navigation={{ session, current: path }}
      script="report-client.js"
    >
      <h1 class="unseen">{title}</h1>
      {lead}
      {sections.map((section) => (
        <SectionOfPage section={section} />
      ))}
    </Shell>,
  );
