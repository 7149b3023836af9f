import type { Issue } from '../../model/document.js';
import { Behind, Notice } from './parts.js';

/** What stands at the top of a page: the issues that change a conclusion. */
export const LoudNotices = ({ issues }: { issues: readonly Issue[] }) =>
  issues.length > 0 ? (
    <ul class="notices" aria-label="What to know before trusting these figures">
      {issues.map((issue) => (
        <Notice issue={issue} />
      ))}
    </ul>
  ) : null;

/** The rest, folded away, and what a page says where scripts do not run. */
export const QuietNotes = ({ issues }: { issues: readonly Issue[] }) => (
  <>
    {issues.length > 0 && (
      <Behind title={`${issues.length} ${issues.length === 1 ? 'note' : 'notes'}`}>
        <ul class="notices" aria-label="Notes">
          {issues.map((issue) => (
            <Notice issue={issue} />
          ))}
        </ul>
      </Behind>
    )}
    <noscript>
      <p>The charts need JavaScript; every chart has its numbers in a table below it.</p>
    </noscript>
  </>
);
