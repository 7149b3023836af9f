import { requireSubject } from '../../facts/artifact.js';
import { recordedUtilization } from '../../facts/utilization/utilization.js';
import type { Session } from '../../session/open.js';
import type { Side } from './side.js';

/** A profile that was stopped before its operators were recorded, reduced for comparing: the times of its stages. */
export async function recordedSide(session: Session): Promise<Side> {
  requireSubject(session, 'profile');
  const database = await session.connect();
  try {
    const stages = await recordedUtilization(session, database);
    return {
      session,
      source: 'stages of the engine, no operators',
      focus: {},
      waterfalls: [],
      stages: stages.map(({ kind, steps, time_ms: time, new_tokens: tokens, mfu }) => ({
        phase: kind,
        value: {
          instances: steps,
          duration_ms: time,
          busy_ms: null,
          main_cause: null,
          kernels: null,
          launches: null,
          tokens,
          mfu,
        },
        mfu_ms: time.value,
        is_clean: true,
      })),
      kernels: [],
      operators: [],
      gemms: [],
      clocks: [],
    };
  } finally {
    await database.close();
  }
}
