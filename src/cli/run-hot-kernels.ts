import { functionName } from '../capture/run/ncu-arguments.js';
import { InferscopeError } from '../model/errors.js';
import { openSession } from '../session/open.js';
import { withRows } from '../session/select.js';
import type { KernelChoice } from '../capture/run/run-options.js';

/** Kernel names taken of each stage. */
const namesPerStage = 8;

/**
 * The hot kernels of each stage of a kept session, for `run --ncu-session`.
 * @throws E_SESSION_NOT_FOUND, E_NO_KERNELS when the session has no kernels outside loading and warm-up
 */
export async function hotKernelsOf(selector: string): Promise<KernelChoice> {
  const session = await openSession(selector, undefined, withRows('kernels', 'kernels'));
  const database = await session.connect();
  try {
    const rows = await database.query<{ kind: string; name: string }>(
      `WITH hot AS (
         SELECT coalesce(p.kind, 'other') AS kind, k.name, sum(k.dur_ns) AS ns
         FROM kernels k
         LEFT JOIN stages s ON s.capture_id = k.capture_id AND s.stage_id = k.stage_id
         LEFT JOIN stages p ON p.capture_id = s.capture_id AND p.stage_id = s.phase_id
         WHERE coalesce(p.kind, 'other') NOT IN ('load', 'warmup') AND k.name IS NOT NULL
         GROUP BY ALL
       )
       SELECT kind, name FROM hot
       QUALIFY row_number() OVER (PARTITION BY kind ORDER BY ns DESC, name) <= ${namesPerStage}
       ORDER BY kind, ns DESC, name`,
    );
    // Kernels outside all stages count only where there are no stages at all.
    const staged = rows.filter(({ kind }) => kind !== 'other');
    const taken = staged.length > 0 ? staged : rows;
    if (taken.length === 0) throw noKernels(selector);
    const stages = [...new Set(taken.map(({ kind }) => kind))].join(', ');
    return {
      names: [...new Set(taken.map(({ name }) => functionName(name)))],
      source: `of session ${session.id}: ${stages}`,
    };
  } finally {
    await database.close();
  }
}

function noKernels(selector: string): InferscopeError {
  return new InferscopeError('E_NO_KERNELS', {
    what: `session ${selector} has no kernels to choose from`,
    why: 'Its table kernels is empty, or holds loading and warm-up only.',
    fix: 'Leave --ncu-session out, or name a session that nsys or torch recorded.',
  });
}
