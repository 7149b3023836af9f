import { joinPhases } from '../../facts/trace/collectives.js';
import type { Finding } from '../../model/documents/explain.js';
import type { PhaseKind } from '../../model/documents/trace.js';
import { weightBytes } from '../../llm/storage.js';
import { formatBytes } from '../../vocabulary/format.js';
import type { FindingContext } from './rule.js';
import { part, plural } from './words.js';

/** Minimum share of the model's weights that the all-gathers of a decode step must move: those of activations move less. */
const minGathered = 0.5;

interface Gathers extends Record<string, number> {
  rank: number;
  bytes: number;
  gathers: number;
}

export interface GatheredWeights {
  /** Gathered on one rank per mean decode step. */
  bytes: number;
  gathers: number;
  /** Bytes of all weights of the model. */
  weights: number;
  evidence: Finding['evidence'][number];
}

/**
 * Weights that a rank gathers from the others in every forward pass, because they are sharded between its uses (FSDP, ZeRO-3). Judged by the
 * decode steps, also for prefills, which can gather as many bytes of activations. Null for other stages, and without recorded sizes of
 * all-gathers or the model's.
 */
export async function gatheredWeights(
  context: FindingContext,
  kind: PhaseKind,
): Promise<GatheredWeights | null> {
  const { model } = context;
  if ('reason' in model || (kind !== 'decode' && kind !== 'prefill')) return null;
  const weights = weightBytes(model.architecture, model.storage).total;
  const { rows, evidence } = await context.evidence<Gathers>(
    `SELECT rank, sum(bytes * ranks)::DOUBLE / count(DISTINCT instance) AS bytes, count(*) / count(DISTINCT instance) AS gathers
     FROM (SELECT c.rank, c.capture_id, c.bytes, c.ranks, p.stage_id AS instance
       FROM collectives c ${joinPhases('c', 'decode')} WHERE c.operation = 'AllGather' AND c.device IS NOT NULL AND c.bytes IS NOT NULL)
     GROUP BY rank, capture_id ORDER BY bytes DESC, rank`,
    ([most]) =>
      most
        ? `${plural(most.gathers, 'all-gather')} per decode step of ${formatBytes(most.bytes / most.gathers)}, ${formatBytes(most.bytes)} in all: ${part(most.bytes, weights)} of the weights`
        : 'no all-gathers',
  );
  const [most] = rows;
  if (!most || most.bytes < minGathered * weights) return null;
  return { bytes: most.bytes, gathers: most.gathers, weights, evidence };
}
