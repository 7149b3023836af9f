import { phaseTime } from '../../../model/headline-time.js';
import type { TracePhase, TraceResult } from '../../../model/documents/trace.js';
import type { Theme } from '../../palette.js';
import type { Chart } from '../chart.js';
import { sharesHeight, sharesOption, type Segment } from '../shares.js';
import { busyColors, causes, phaseName } from './words.js';

export const shownPhases = (result: TraceResult): TracePhase[] =>
  result.phases.filter(({ wall }) => wall.mean_ns > 0);

/** Compute, exposed communication and copies, then idle by cause: they sum to the headline time of a mean instance. */
export function phaseSegments(phase: TracePhase, theme: Theme): Segment[] {
  const colors = busyColors(theme);
  const idle = new Map(phase.idle_by_cause.map(({ id, ns }) => [id, ns]));
  return [
    { name: 'compute kernels', ms: phase.compute_ns / 1e6, color: colors.compute },
    { name: 'communication', ms: phase.exposed_comm_ns / 1e6, color: colors.communication },
    { name: 'copies', ms: phase.exposed_copy_ns / 1e6, color: colors.copies },
    ...Object.entries(causes).map(([id, { name, color }]) => ({
      name: `idle: ${name}`,
      ms: (idle.get(id) ?? 0) / 1e6,
      color,
    })),
  ];
}

/** One bar a phase, 100 % = headline time of a mean instance. */
export const phasesChart: Chart<TraceResult> = {
  height: (result) => sharesHeight(shownPhases(result).length),
  build: (input) =>
    sharesOption(
      input,
      shownPhases(input.result).map((phase) => ({
        name: phaseName(phase.kind),
        whole: phaseTime(phase).ms,
        parts: phaseSegments(phase, input.theme),
      })),
    ),
};
