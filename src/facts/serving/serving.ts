import { document, type Document } from '../../model/document.js';
import {
  type LoadPlan,
  loadPlanSchema,
  type ServingPoint,
  type ServingResult,
  servingVersion,
} from '../../model/documents/serving.js';
import type { Session } from '../../session/open.js';
import { readPlan } from '../artifact.js';
import { sessionOfKind } from '../session-identity.js';
import { bestUnderSlo, saturation, servingIssues } from './answers.js';
import { servingPoint } from './point.js';
import { readRequestRows, readServerSeries } from './requests.js';

/**
 * Results of a load test, from the session's requests and telemetry.
 * @throws E_USAGE if the session has no load test
 */
export async function analyzeServing(session: Session): Promise<Document<ServingResult>> {
  const plan = await readLoadPlan(session);
  const database = await session.connect();
  try {
    const points: ServingPoint[] = [];
    for (const facts of plan.points) {
      const rows = await readRequestRows(database, facts.execution_id);
      const series = await readServerSeries(database, facts.execution_id);
      points.push(servingPoint(facts, rows, plan.slo, series));
    }
    return document(
      'serving',
      servingVersion,
      {
        session: sessionOfKind(session),
        target: plan.target,
        prompts: plan.prompts,
        slo: plan.slo,
        probe: plan.probe,
        points,
        saturation: saturation(points, plan.probe),
        best_under_slo: bestUnderSlo(points, plan.slo),
      },
      [...session.issues, ...servingIssues(points, plan)],
    );
  } finally {
    await database.close();
  }
}

/** @throws E_USAGE if the session has no load test */
export async function readLoadPlan(session: Session): Promise<LoadPlan> {
  return await readPlan(session, 'load', loadPlanSchema);
}
