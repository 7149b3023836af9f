import { kernelPlanSchema } from '../../model/documents/kernels.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { readPlan } from '../artifact.js';
import { runsSql } from './executed.js';

interface TracedRun extends Record<string, string | number | null> {
  case: string;
  execution_id: string;
  start_ns: number;
  end_ns: number;
}

/** The slowest run of each traced case of a `kernels` session. */
export async function readSlowestRuns(session: Session, database: SessionDatabase): Promise<TracedRun[]> {
  const { traces } = await readPlan(session, 'kernels', kernelPlanSchema);
  const runs: TracedRun[] = [];
  for (const { capture_id, case: onlyCase } of traces)
    runs.push(
      ...(await database.query<TracedRun>(
        `WITH runs AS (${runsSql})
         SELECT "case", execution_id, start_ns, end_ns FROM stages JOIN runs USING (stage_id) WHERE capture_id = $1
         QUALIFY row_number() OVER (PARTITION BY "case" ORDER BY end_ns - start_ns DESC) = 1`,
        [capture_id, onlyCase],
      )),
    );
  return runs;
}
