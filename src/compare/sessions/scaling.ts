import type { ComparedScaling } from '../../model/documents/compare.js';
import { explainedBars, headlineTime } from '../../model/headline-time.js';
import { isBarOf } from '../../model/bars.js';
import { rankFilesSchema } from '../../model/ranks.js';
import { readArtifactJson } from '../../facts/artifact.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { architectureOf } from './architecture.js';
import type { Side } from './side.js';

/** Ranks of the job, as its files state, else those that ran kernels; null without kernels. */
export async function ranksOf(session: Session, database: SessionDatabase): Promise<number | null> {
  const stored = await readArtifactJson(session, 'ranks', 'the files and clocks of the ranks');
  const recorded = stored === null ? null : rankFilesSchema.parse(stored).world_size;
  if (recorded !== null) return recorded;
  const [row] = await database.query<{ n: number }>(
    'SELECT count(*) AS n FROM (SELECT DISTINCT rank, device FROM kernels)',
  );
  return row!.n === 0 ? null : row!.n;
}

type ScalingSide = Pick<Side, 'ranks' | 'waterfalls' | 'stages' | 'session'>;
type ScalingValue = ComparedScaling['values'][number];

/** The session's model by its sizes, else by its name; null if neither is known. */
export function modelOf({ session: { manifest } }: Pick<Side, 'session'>): string | null {
  const architecture = architectureOf(manifest);
  return architecture ? JSON.stringify(architecture) : (manifest.workload?.model?.name ?? null);
}

/** Before the first step is measured, more ranks share no work. */
const withoutSteps: ReadonlySet<string> = new Set(['load', 'warmup', 'other', 'outside']);

/**
 * Stages of sessions of one model with different numbers of ranks, compared with the first session that has the stage. The ranks of
 * a session share the work of a step; if steps compute different numbers of tokens, tokens per second are compared.
 */
export function scalingOf(sides: readonly ScalingSide[]): ComparedScaling[] {
  const counts = new Set(sides.flatMap(({ ranks }) => ranks ?? []));
  if (counts.size < 2 || new Set(sides.map(modelOf)).size > 1) return [];
  const kinds = [...new Set(sides.flatMap(({ waterfalls }) => waterfalls.map(({ kind }) => kind)))];
  return kinds
    .filter((kind) => !withoutSteps.has(kind))
    .map((kind) => ({ phase: kind, values: valuesOf(sides, kind) }))
    .filter(({ values }) => values.filter((value) => value !== null).length > 1);
}

function valuesOf(sides: readonly ScalingSide[], kind: string): ScalingValue[] {
  const values = sides.map(({ ranks, waterfalls, stages }) => {
    const kindWaterfall = waterfalls.find((waterfall) => waterfall.kind === kind);
    const time = kindWaterfall && headlineTime(kindWaterfall).value;
    if (!kindWaterfall || !time || ranks === null) return null;
    const exposed = explainedBars(kindWaterfall.bars).bars.filter(({ id }) => isBarOf(id, 'exposed_comm'));
    const tokens = stages.find(({ phase }) => phase === kind)?.value.tokens ?? null;
    return { ranks, time, tokens, communication: exposed.reduce((sum, { ms }) => sum + ms, 0) / time };
  });
  const base = values.find((stage) => stage !== null);
  const allHaveTokens = values.every((stage) => stage === null || stage.tokens !== null);
  const rate = ({ time, tokens }: { time: number; tokens: number | null }) =>
    (allHaveTokens ? tokens! : 1) / time;
  return values.map((stage) => {
    if (stage === null || !base) return null;
    const speedup = rate(stage) / rate(base);
    return {
      ranks: stage.ranks,
      speedup,
      efficiency: (speedup * base.ranks) / stage.ranks,
      communication_share: stage.communication,
    };
  });
}
