import type { ExplainPageInputs } from '../report/html/explain/page.js';
import type { Session } from '../session/open.js';
import { talk } from './output.js';

/**
 * `explain --html`: the page of what was asked, before waterfall and findings of the session.
 * @throws E_USAGE, E_DISK_FULL, E_HOME_UNWRITABLE
 */
export async function writeExplainPage(
  path: string,
  session: Session,
  asked: Omit<ExplainPageInputs, 'explain'> & Partial<Pick<ExplainPageInputs, 'explain'>>,
): Promise<void> {
  const { writePage } = await import('./report-file.js');
  const { explainReport } = await import('../report/html/explain/page.js');
  const { rememberedExplanation } = await import('../analyze/explain/explain.js');
  const explain = asked.explain ?? (await rememberedExplanation(session));
  await writePage(path, (parts) => explainReport({ ...asked, explain }, parts));
  talk(`page written: ${path}`);
}
