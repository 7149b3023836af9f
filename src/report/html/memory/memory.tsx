import type { Document } from '../../../model/document.js';
import type { MemoryResult } from '../../../model/documents/memory-result.js';
import { componentWords, gbText } from '../../memory-words.js';
import { documentPage, type PageSection } from '../document-page.js';
import { DataTable } from '../parts.js';

const breakdown: PageSection<MemoryResult> = {
  id: 'breakdown',
  title: 'Where it went',
  render: ({ data }) => (
    <DataTable
      caption="Components at the peak"
      columns={[{ head: 'component' }, { head: 'GB', numeric: true }, { head: 'evidence', wraps: true }]}
      rows={data.profile.memory_breakdown.components.map(({ component, gb, evidence }) => [
        componentWords[component],
        gbText(gb),
        evidence.join('; '),
      ])}
    />
  ),
};

/** The page of a memory session. */
export function memoryReport(
  document: Document<MemoryResult>,
  { clientScript }: { clientScript: string },
): string {
  const { session } = document.data;
  const summary = (
    <header id="summary">
      <h1>{session.title}</h1>
    </header>
  );
  return documentPage({
    title: session.title,
    document,
    session,
    summary,
    sections: [breakdown],
    clientScript,
  });
}
