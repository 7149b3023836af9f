import { type BenchPlan, benchPlanSchema } from '../../model/documents/bench.js';
import { missing, type MissingFigure } from '../../model/figure.js';
import type { Session } from '../../session/open.js';
import { readPlan } from '../artifact.js';

/**
 * Facts from the run's plan: variants, points, protocol, and what the engine cannot measure.
 * @throws E_USAGE if the session has no inferscope benchmark
 */
export async function readBenchPlan(session: Session): Promise<BenchPlan> {
  return await readPlan(session, 'bench', benchPlanSchema);
}

/** Why a figure is missing: the engine's reason under one of these names, else `otherwise`. */
export type MissingReason = (names: readonly string[], otherwise: MissingFigure) => MissingFigure;

export function missingReasons(notMeasured: BenchPlan['not_measured']): MissingReason {
  return (names, otherwise) => {
    const notMeasuredEntry = notMeasured.find(({ figure }) => names.includes(figure));
    return notMeasuredEntry ? missing(notMeasuredEntry.code, notMeasuredEntry.text) : otherwise;
  };
}
