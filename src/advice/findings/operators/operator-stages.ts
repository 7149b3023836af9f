import { stepKinds } from '../../../model/record.js';
import type { PhaseKind } from '../../../model/documents/trace.js';
import type { FindingContext } from '../rule.js';
import { withHeadlineTime } from '../headline-windows.js';

/** A kind of stage of a program without a GPU, from its framework's operators; times in ms per mean instance. */
export interface OperatorStage {
  kind: PhaseKind;
  instances: number;
  /** The headline time. */
  wall_ms: number;
  /** Self time of operators on the main thread (`mainThread`), ms. */
  operators_ms: number;
}

const stagesByContext = new WeakMap<FindingContext, Promise<OperatorStage[]>>();

/**
 * Stages of an operator timeline: inference and training steps; without any, its other windows. Empty if a GPU computed or no
 * framework profiler ran.
 */
export function operatorStages(context: FindingContext): Promise<OperatorStage[]> {
  const stages = stagesByContext.get(context) ?? readStages(context);
  stagesByContext.set(context, stages);
  return stages;
}

const steps: ReadonlySet<PhaseKind> = new Set([...stepKinds, 'training']);

/** SQL of the operators that start in a window of a kind, with `window_id`; without Python frames. */
export const operatorsSql = (kind: PhaseKind): string =>
  `SELECT o.*, w.window_id, w.w_start FROM (SELECT * FROM rank_ops WHERE op_type IS DISTINCT FROM 'python_function' AND start_ns IS NOT NULL) o
   ASOF JOIN (SELECT stage_id AS window_id, kind AS w_kind, start_ns AS w_start, end_ns AS w_end FROM windows WHERE kind <> 'sampling') w ON o.start_ns >= w.w_start
   WHERE o.start_ns < w.w_end AND w.w_kind = '${kind}'`;

/** SQL of the thread with the most operator time; operators of other threads run in parallel to it. */
export const mainThread =
  '(SELECT arg_max(tid, ns) FROM (SELECT tid, sum(coalesce(self_dur_ns, dur_ns)) AS ns FROM rank_ops GROUP BY tid))';

async function readStages({ operators, waterfalls }: FindingContext): Promise<OperatorStage[]> {
  if (!operators) return [];
  const { database } = operators;
  const windows = await database.query<Omit<OperatorStage, 'operators_ms'>>(
    `SELECT kind, count(*) AS instances, avg(end_ns - start_ns) / 1e6 AS wall_ms FROM windows
     WHERE kind <> 'sampling' AND end_ns > start_ns GROUP BY kind ORDER BY sum(end_ns - start_ns) DESC`,
  );
  const timed = withHeadlineTime(waterfalls, windows);
  const stepWindows = timed.filter(({ kind }) => steps.has(kind));
  const stages: OperatorStage[] = [];
  for (const window of stepWindows.length > 0 ? stepWindows : timed) {
    const [row] = await database.query<{ ms: number }>(
      `SELECT coalesce(sum(coalesce(self_dur_ns, dur_ns)), 0) / 1e6 / ${window.instances} AS ms FROM (${operatorsSql(window.kind)}) WHERE tid = ${mainThread}`,
    );
    stages.push({ ...window, operators_ms: row?.ms ?? 0 });
  }
  return stages;
}
