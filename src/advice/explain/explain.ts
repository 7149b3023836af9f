import { interruptedStepIssues } from '../../facts/utilization/steps.js';
import { document, type Document } from '../../model/document.js';
import { type ExplainResult, explainVersion } from '../../model/documents/explain.js';
import { hasSubject } from '../../model/subjects.js';
import type { Session } from '../../session/open.js';
import { cachedAnswer } from '../../session/cached-answer.js';
import { findingContext, rankedFindings } from '../findings/findings.js';
import type { ScopeOptions, TraceScope } from '../../facts/trace/scope.js';
import { judgedStages, sessionWaterfalls } from '../../facts/waterfall/session-waterfalls.js';
import { readHeadline, saveHeadline } from '../../session/headline.js';
import { benchPoints, type HeadlinePoint, headlineOf, loadPoints } from './headline.js';
import { stepsOfSession } from './next-steps.js';
import { type InferredSteps, summarySentences } from './sentences.js';
import { sessionIdentity } from '../../facts/session-identity.js';

/**
 * Explains where the time above the hardware limit went, why, and what to change: a waterfall per kind of stage, findings
 * with evidence, and three sentences. Never throws for data that the session lacks; the document states the reason.
 * @param options rank and device; default: the rank that the others wait for, else the slowest
 * @throws E_USAGE when the session does not have that rank and device
 */
export async function explainSession(
  session: Session,
  options: ScopeOptions = {},
): Promise<Document<ExplainResult>> {
  const { manifest } = session;
  const database = await session.connect();
  try {
    const {
      stages,
      withoutWaterfall,
      scope,
      whyRank = null,
    } = await sessionWaterfalls(session, database, options);
    const context = await findingContext(session, database, scope, judgedStages(stages));
    const ruleResults = await rankedFindings(context);
    const { machine } = context;
    const result: ExplainResult = {
      session: sessionIdentity(session),
      workload: manifest.workload,
      ...summarySentences(stages, withoutWaterfall, ruleResults.findings, {
        whyRank,
        inferred: scope && (await readInferredSteps(scope)),
        machine,
        hasJudgedRules: ruleResults.rules.some(({ outcome }) => outcome !== 'not_applicable'),
      }),
      stages,
      without_waterfall: withoutWaterfall,
      ...ruleResults,
      machine,
      next_steps: stepsOfSession(session, { stages, findings: ruleResults.findings }),
    };
    return document('explain', explainVersion, result, [
      ...session.issues,
      ...(await interruptedStepIssues(session, database)),
    ]);
  } finally {
    await database.close();
  }
}

/** Steps that are not marked but were inferred from the repeating sequence of kernels; null if all are marked. */
async function readInferredSteps({ database }: TraceScope): Promise<InferredSteps | null> {
  const [steps] = await database.query<{ n: number; confidence: number | null }>(
    'SELECT count(*) AS n, min(confidence) AS confidence FROM phase_stages WHERE confidence IS NOT NULL',
  );
  return steps && steps.n > 0 && steps.confidence !== null
    ? { n: steps.n, confidence: steps.confidence }
    : null;
}

/** explainSession, cached in derived/ for large sessions. The headline is cached for every session, for `session list`. */
export async function cachedExplanation(session: Session): Promise<Document<ExplainResult>> {
  const { explainDocumentSchema } = await import('../../model/documents/explain.js');
  const explanation = await cachedAnswer(session, 'explain', explainDocumentSchema, () =>
    explainSession(session),
  );
  // The headline of a memory profile is its total, which its own analysis saves.
  if (hasSubject(session.manifest, 'memory')) {
    if (readHeadline(session.folder, session.sha256) === undefined)
      await (await import('../../facts/memory-profile/memory.js')).analyzeMemory(session);
    return explanation;
  }
  saveHeadline(session, headlineOf(explanation.data, await readHeadlinePoints(session)));
  return explanation;
}

/** Points of a benchmark or loads of a load test; empty for other sessions. */
async function readHeadlinePoints(session: Session): Promise<HeadlinePoint[]> {
  if (hasSubject(session.manifest, 'bench')) {
    const { analyzeBench } = await import('../../facts/bench/bench.js');
    return benchPoints((await analyzeBench(session)).data);
  }
  if (!hasSubject(session.manifest, 'load')) return [];
  const { analyzeServing } = await import('../../facts/serving/serving.js');
  return loadPoints((await analyzeServing(session)).data);
}
