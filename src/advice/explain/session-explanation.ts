import { type Analysed, analyzeSession, documentsOf } from '../../facts/session-document.js';
import type { Document } from '../../model/document.js';
import type { ExplainResult } from '../../model/documents/explain.js';
import type { Session } from '../../session/open.js';

/** Kinds that have waterfall and findings; those that say why, where there is neither, have `true`. */
const explained: Partial<Record<Analysed['kind'], boolean>> = {
  profile: false,
  bench: true,
  serving: true,
  results: false,
  memory: false,
  captures: true,
};

/** What the summaries and pages of a session lead with: sentences, waterfall, findings; null for kinds that have none. */
export async function explanationOf(
  session: Session,
  { kind }: Pick<Analysed, 'kind'>,
): Promise<Document<ExplainResult> | null> {
  const always = explained[kind];
  if (always === undefined) return null;
  const { rememberedExplanation } = await import('./explain.js');
  const explain = await rememberedExplanation(session);
  return always || explain.data.stages.length + explain.data.findings.length > 0 ? explain : null;
}

/**
 * Both from one database: the explanation begins with tables that the analysis has made in it.
 * @param known takes the analysis while the explanation is still being made
 */
export async function analyzeAndExplain(
  session: Session,
  known: (analysed: Analysed) => void = () => {},
): Promise<{ analysed: Analysed; explain: Document<ExplainResult> | null }> {
  const database = await session.connect();
  try {
    const analysed = await analyzeSession(session);
    known(analysed);
    const explain = documentsOf(analysed).length > 0 ? await explanationOf(session, analysed) : null;
    return { analysed, explain };
  } finally {
    await database.close();
  }
}
