import type { Child, FC } from 'hono/jsx';
import type { Document } from '../../model/document.js';
import { Page } from './page.js';

/** A part of a page of one document; absent from page and contents where `applies` says so. */
export interface PageSection<T> {
  /** Its anchor. */
  id: string;
  title: string;
  /** On a wide page together with the other halves, before what is whole. */
  half?: boolean;
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
  const parts = sections.map(({ id, title, half, render }) => ({ id, title, half, body: render(document) }));
  const halves = parts.filter(({ half }) => half);
  const page = (
    <Page
      title={`${facts.title} · inferscope`}
      contents={[{ id: 'summary', title: 'Summary' }, ...parts]}
      data={document}
      clientScript={facts.clientScript}
      readingScript={facts.readingScript}
    >
      {facts.summary}
      {halves.length > 0 && (
        <div class="halves">
          {halves.map((part) => (
            <PartOfPage {...part} />
          ))}
        </div>
      )}
      {parts
        .filter((part) => !halves.includes(part))
        .map((part) => (
          <PartOfPage {...part} />
        ))}
      <footer>
        inferscope {document.tool_version} · session {session.id} · {session.started_at} · the page holds its
        data as {document.schema} JSON in <code>#profile-data</code>
      </footer>
    </Page>
  );
  return `<!DOCTYPE html>\n${String(page)}\n`;
}

const PartOfPage: FC<{ id: string; title: string; body: Child }> = ({ id, title, body }) => (
  <section id={id} aria-labelledby={`${id}-title`}>
    <h2 id={`${id}-title`}>
      <a href={`#${id}`}>{title}</a>
    </h2>
    {body}
  </section>
);
