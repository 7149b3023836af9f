import { stepKinds } from '../../model/record.js';
import type { Session } from '../../session/open.js';
import { traceSide } from '../sessions/trace-side.js';
import type { MetricPart } from './metric-parts.js';

const phases = new Set([...stepKinds, 'training', 'sampling']);

/**
 * Phases of a GPU timeline, from the clean execution if there is one. Times under a profiler have separate names, so
 * that they are never compared with clean ones.
 */
export async function traceParts(session: Session): Promise<MetricPart[]> {
  const { stages } = await traceSide(session);
  return stages.flatMap(({ phase, value: { duration_ms }, is_clean: isClean = false }): MetricPart[] => {
    if (!phases.has(phase) || duration_ms.value === null) return [];
    const { ci95, ci95_over: over, value } = duration_ms;
    const n = over?.n ?? duration_ms.n;
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
          n !== undefined && n > 1 && ci95 ? { n, ci95, over_launches: over?.unit === 'launches' } : null,
        source: duration_ms.source,
      },
    ];
  });
}
