import { type BenchPlan, benchPlanSchema } from '../../model/documents/bench.js';
import { missing, type MissingFigure } from '../../model/figure.js';
import type { Session } from '../../session/open.js';
import { planOf } from '../artifact.js';

/**
 * What the run alone knows: variants, points, protocol, and what the engine cannot measure.
 * @throws E_USAGE when the session holds no benchmark of ours
 */
export async function benchPlanOf(session: Session): Promise<BenchPlan> {
  return benchPlanSchema.parse(await planOf(session, 'bench'));
}

/** Why a figure is missing: what the engine said it cannot measure under one of these names, else `otherwise`. */
export type Because = (names: readonly string[], otherwise: MissingFigure) => MissingFigure;

export function reasons(cannot: BenchPlan['cannot']): Because {
  return (names, otherwise) => {
    const found = cannot.find(({ figure }) => names.includes(figure));
    return found ? missing(found.code, found.text) : otherwise;
  };
}
