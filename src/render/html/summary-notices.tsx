import type { Issue } from '../../model/document.js';
import { Behind, Notice } from './parts.js';
import { plural } from '../../vocabulary/format.js';

const list = (issues: readonly Issue[], label: string) => (
  <ul class="notices" aria-label={label}>
    {issues.map((issue) => (
      <Notice issue={issue} />
    ))}
  </ul>
);

/** Warnings and errors, and folded notes. */
export const Notices = ({ issues }: { issues: readonly Issue[] }) => {
  const loud = issues.filter(({ severity }) => severity !== 'info');
  const notes = issues.filter(({ severity }) => severity === 'info');
  return (
    <>
      {loud.length > 0 && list(loud, 'What to know before trusting these figures')}
      {notes.length > 0 && <Behind title={plural(notes.length, 'note')}>{list(notes, 'Notes')}</Behind>}
    </>
  );
};
