import type { Child } from 'hono/jsx';
import type { Document } from '../../model/document.js';
import { Page } from './page.js';

/** A part of a page of one document; absent from page and contents where `applies` says so. */
export interface PageSection<T> {
  /** Its anchor. */
  id: string;
  title: string;
  render: (document: Document<T>) => Child;
  applies?: (document: Document<T>) => boolean;
}

interface PageFacts<T> {
  title: string;
  document: Document<T>;
  session: { id: string; started_at: string };
  summary: Child;
  sections: PageSection<T>[];
  clientScript: string;
  /** For a page without charts. */
  readingScript?: string | undefined;
}

/** One page of one document, without any remote asset: what someone in a hurry reads, then its sections. */
export function documentPage<T>(facts: PageFacts<T>): string {
  const { document, session } = facts;
  const sections = facts.sections.filter(({ applies }) => applies?.(document) ?? true);
  const parts = sections.map(({ id, title, render }) => ({ id, title, body: render(document) }));
  const page = (
    <Page
      title={`${facts.title} · inferscope`}
      contents={[{ id: 'summary', title: 'Summary' }, ...parts]}
      data={document}
      clientScript={facts.clientScript}
      readingScript={facts.readingScript}
    >
      {facts.summary}
      {parts.map((section) => (
        <section id={section.id} aria-labelledby={`${section.id}-title`}>
          <h2 id={`${section.id}-title`}>
            <a href={`#${section.id}`}>{section.title}</a>
          </h2>
          {section.body}
        </section>
      ))}
      <footer>
        inferscope {document.tool_version} · session {session.id} · {session.started_at} · the page holds its
        data as {document.schema} JSON in <code>#profile-data</code>
      </footer>
    </Page>
  );
  return `<!DOCTYPE html>\n${String(page)}\n`;
}
