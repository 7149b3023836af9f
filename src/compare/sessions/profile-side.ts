import type { OpClass } from '../../model/classes.js';
import type { Session } from '../../session/open.js';
import { analyzeProfile } from '../../analyze/profile.js';
import type { Side, SideKernel } from './side.js';

/**
 * A profile of the embedded engine, reduced for comparing: stage times of its clean execution with their intervals,
 * operators of its profiled one. Operators of the decoder's layers are one row a role: "/layers.N/attn/qkv".
 */
export async function profileSide(session: Session): Promise<Side> {
  const { data } = await analyzeProfile(session);
  const database = await session.connect();
  try {
    const rows = await database.query<{
      phase: string;
      name: string;
      op_type: string | null;
      class: OpClass | null;
      count: number;
      total_ns: number;
      instances: number;
    }>(
      `WITH timed AS (SELECT stage_id, kind, count(*) OVER (PARTITION BY kind) AS instances FROM stages
         WHERE execution_id = 'profiled' AND NOT coalesce(warmup, false))
       SELECT t.kind AS phase, regexp_replace(coalesce(o.name, o.op_type, ''), '\\d+', 'N', 'g') AS name, any_value(o.op_type) AS op_type,
              any_value(o.class) AS class, count(*) AS count, sum(o.dur_ns)::DOUBLE AS total_ns, any_value(t.instances) AS instances
       FROM ops o JOIN timed t ON t.stage_id = o.stage_id WHERE o.execution_id = 'profiled' GROUP BY 1, 2`,
    );
    return {
      session,
      source: 'times of the clean execution, operators of the profiled one',
      focus: {},
      waterfalls: [],
      stages: data.stages.map((stage) => ({
        phase: stage.kind,
        value: {
          instances: stage.instances,
          duration_ms: stage.duration_ms,
          busy_ms: stage.breakdown?.operators_ms ?? null,
          main_cause: null,
          kernels: null,
          launches: null,
          tokens: tokensOf(stage.tokens_per_s.value, stage.duration_ms.value),
          mfu: stage.mfu,
        },
        mfu_ms: stage.duration_ms.value,
      })),
      kernels: rows.map((row): SideKernel => ({
        phase: row.phase,
        name: row.name,
        short_name: row.name,
        class: row.class ?? 'other',
        tile: null,
        count: row.count / row.instances,
        ms: row.total_ns / row.instances / 1e6,
        mean_ns: row.total_ns / row.count,
      })),
      operators: [],
      gemms: [],
      clocks: [],
    };
  } finally {
    await database.close();
  }
}

function tokensOf(perSecond: number | null, ms: number | null): number | null {
  return perSecond === null || ms === null ? null : Math.round((perSecond * ms) / 1e3);
}
