import type { OpClass } from '../model/classes.js';
import type { Timeline } from '../model/documents/profile.js';
import type { SessionDatabase } from '../session/query.js';

const decodeStepsShown = 3;

/** One prefill and the first decode steps of the first timed repeat under the profiler, operator by operator. */
export async function timeline(database: SessionDatabase): Promise<Timeline | null> {
  const stages = await database.query<{
    stage_id: number;
    kind: string;
    step_index: number | null;
    start_ns: number;
    end_ns: number;
  }>(
    `SELECT stage_id, kind, step_index, start_ns, end_ns FROM stages
     WHERE execution_id = 'profiled' AND NOT warmup AND kind IN ('prefill', 'decode', 'sampling')
       AND iteration = (SELECT min(iteration) FROM stages WHERE execution_id = 'profiled' AND NOT warmup AND iteration IS NOT NULL)
       AND coalesce(step_index, -1) < ${decodeStepsShown}
     ORDER BY start_ns`,
  );
  const origin = stages[0]?.start_ns;
  if (origin === undefined) return null;
  const operators = await database.query<{
    name: string;
    op_type: string;
    class: OpClass;
    layer: number | null;
    start_ms: number;
    dur_ms: number;
  }>(
    `SELECT name, op_type, class, layer, (start_ns - $1) / 1e6 AS start_ms, dur_ns / 1e6 AS dur_ms FROM ops
     WHERE execution_id = 'profiled' AND list_contains(string_split($2, ',')::BIGINT[], stage_id) ORDER BY start_ns`,
    [origin, stages.map((stage) => stage.stage_id).join(',')],
  );
  return {
    stages: stages.map((stage) => ({
      kind: stage.kind,
      label: stage.step_index === null ? stage.kind : `${stage.kind} ${stage.step_index}`,
      start_ms: (stage.start_ns - origin) / 1e6,
      dur_ms: (stage.end_ns - stage.start_ns) / 1e6,
    })),
    operators,
  };
}
