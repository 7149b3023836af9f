import { InferscopeError } from '../../model/errors.js';
import type { Session } from '../../session/open.js';

/** Number of kernel names per stage. */
const namesPerStage = 8;

/**
 * The kernels with the most time of each stage, without loading and warm-up.
 * @throws E_NO_KERNELS if there are none
 */
export async function readHotKernels(session: Session): Promise<{ names: string[]; stages: string[] }> {
  const database = await session.connect();
  try {
    const rows = await database.query<{ kind: string; name: string }>(
      `WITH stage_kernels AS (
         SELECT coalesce(p.kind, 'other') AS kind, k.name, sum(k.dur_ns) AS ns
         FROM kernels k
         LEFT JOIN stages s ON s.capture_id = k.capture_id AND s.stage_id = k.stage_id
         LEFT JOIN stages p ON p.capture_id = s.capture_id AND p.stage_id = s.phase_id
         WHERE coalesce(p.kind, 'other') NOT IN ('load', 'warmup') AND k.name IS NOT NULL
         GROUP BY ALL
       )
       SELECT kind, name FROM stage_kernels
       QUALIFY row_number() OVER (PARTITION BY kind ORDER BY ns DESC, name) <= ${namesPerStage}
       ORDER BY kind, ns DESC, name`,
    );
    // Kernels outside stages count only if there are no stages.
    const staged = rows.filter(({ kind }) => kind !== 'other');
    const selected = staged.length > 0 ? staged : rows;
    if (selected.length === 0) throw noKernels(session.id);
    return {
      names: [...new Set(selected.map(({ name }) => name))],
      stages: [...new Set(selected.map(({ kind }) => kind))],
    };
  } finally {
    await database.close();
  }
}

function noKernels(id: string): InferscopeError {
  return new InferscopeError('E_NO_KERNELS', {
    what: `session ${id} has no kernels to choose from`,
    why: 'Its table kernels is empty, or has only loading and warm-up.',
    fix: 'Omit --ncu-session, or name a session recorded with nsys or torch.',
  });
}
