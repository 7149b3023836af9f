import { type AnalyzedSession, analyzeSession, documentsOf } from '../../facts/session-document.js';
import type { Document } from '../../model/document.js';
import type { ExplainResult } from '../../model/documents/explain.js';
import type { Session } from '../../session/open.js';

/** Session kinds that have an explanation; `true` if it is shown without stages and findings too, because it states why. */
const explainedKinds: Partial<Record<AnalyzedSession['kind'], boolean>> = {
  profile: false,
  bench: true,
  serving: true,
  results: false,
  memory: false,
  captures: true,
};

/** The explanation shown first in summaries and pages: sentences, waterfall, findings; null for kinds without one. */
export async function explanationOf(
  session: Session,
  { kind }: Pick<AnalyzedSession, 'kind'>,
): Promise<Document<ExplainResult> | null> {
  const always = explainedKinds[kind];
  if (always === undefined) return null;
  const { cachedExplanation } = await import('./explain.js');
  const explain = await cachedExplanation(session);
  return always || explain.data.stages.length + explain.data.findings.length > 0 ? explain : null;
}

/**
 * Analysis and explanation from one database: the explanation uses tables that the analysis created.
 * @param onAnalyzed receives the analysis before the explanation is complete
 */
export async function analyzeAndExplain(
  session: Session,
  onAnalyzed: (analyzed: AnalyzedSession) => void = () => {},
): Promise<{ analyzed: AnalyzedSession; explain: Document<ExplainResult> | null }> {
  const database = await session.connect();
  try {
    const analyzed = await analyzeSession(session);
    onAnalyzed(analyzed);
    const explain = documentsOf(analyzed).length > 0 ? await explanationOf(session, analyzed) : null;
    return { analyzed, explain };
  } finally {
    await database.close();
  }
}
