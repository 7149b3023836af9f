import { stepKinds } from '../../model/record.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { traceSide } from '../sessions/trace-side.js';
import type { MetricPart } from './metric-parts.js';

const phases = new Set([...stepKinds, 'sampling']);

/**
 * Phases of a GPU timeline: from the clean execution where there is one. Times under a profiler have a name of their
 * own, so that they are never held against clean ones.
 */
export async function traceParts(session: Session, database: SessionDatabase): Promise<MetricPart[]> {
  const { stages } = await traceSide(session);
  const clean = session.manifest.executions
    .filter(({ purpose }) => purpose === 'clean')
    .map(({ execution_id }) => execution_id);
  const [counted] = await database.query<{ launches: number }>(
    `SELECT count(DISTINCT pid) AS launches FROM stages WHERE list_contains(string_split($1, ','), execution_id)`,
    [clean.join(',')],
  );
  return stages.flatMap(({ phase, value: { duration_ms }, is_clean: isClean = false }): MetricPart[] => {
    if (!phases.has(phase) || duration_ms.value === null) return [];
    const { n, ci95, value } = duration_ms;
    return [
      {
        point: null,
        name: isClean ? `${phase}_step_ms` : `${phase}_step_profiled_ms`,
        unit: 'ms',
        better: 'lower',
        value,
        launches: [],
        repeats: [],
        interval:
          n !== undefined && n > 1 && ci95
            ? { n, ci95, over_launches: isClean && (counted?.launches ?? 1) > 1 }
            : null,
        source: duration_ms.source,
      },
    ];
  });
}
