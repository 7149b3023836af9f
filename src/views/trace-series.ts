import { phaseTime } from '../model/headline-time.js';
import type { PhaseClasses, TracePhase, TraceResult } from '../model/documents/trace.js';
import type { PhaseKind } from '../model/documents/trace-phase.js';
import { idleCauseLabel, idleCauses } from '../vocabulary/idle-causes.js';
import { phaseLabel } from '../vocabulary/stages.js';

export const shownPhases = ({ phases }: Pick<TraceResult, 'phases'>): TracePhase[] =>
  phases.filter(({ wall }) => wall.mean_ns > 0);

/** Whether ranges mark phases; without them the whole capture is one, of kind outside. */
export const hasMarks = ({ phases }: Pick<TraceResult, 'phases'>): boolean =>
  phases.some(({ kind }) => kind !== 'outside');

/** Labels of the phases of a capture. */
export const labelsOf = (data: Pick<TraceResult, 'phases'>): ((kind: PhaseKind | null) => string) =>
  hasMarks(data) ? phaseLabel : () => phaseLabel(null);

/** Part of a mean instance of a phase on the GPU. */
interface PhasePart {
  /** compute, communication, copies, or the cause of idle time. */
  id: string;
  name: string;
  ms: number;
  /** Share of the phase's time, 0 to 1. */
  share: number;
}

/** Compute, exposed communication and copies, then idle time by cause; they sum to the headline time of a mean instance. */
export function phaseParts(phase: TracePhase): PhasePart[] {
  const phaseMs = phaseTime(phase).ms;
  const idle = new Map(phase.idle_by_cause.map(({ id, ns }) => [id, ns]));
  const part = (id: string, name: string, ns: number): PhasePart => ({
    id,
    name,
    ms: ns / 1e6,
    share: phaseMs > 0 ? ns / 1e6 / phaseMs : 0,
  });
  return [
    part('compute', 'compute kernels', phase.compute_ns),
    part('communication', 'exposed communication', phase.exposed_comm_ns),
    part('copies', 'exposed copies', phase.exposed_copy_ns),
    ...Object.keys(idleCauses).map((id) => part(id, `idle: ${idleCauseLabel(id)}`, idle.get(id) ?? 0)),
  ];
}

/** Kernel classes of the whole capture, then of each phase that has kernels. */
export const classTables = (data: Pick<TraceResult, 'classes' | 'phases'>): PhaseClasses[] =>
  data.classes.filter(({ rows, kind }) => rows.length > 0 && (kind === null || hasMarks(data)));

/** Kinds of phases that telemetry has means for. */
export const sampledPhases = ({ telemetry }: Pick<TraceResult, 'telemetry'>) => [
  ...new Set((telemetry?.series ?? []).flatMap(({ phases }) => phases.map(({ kind }) => kind))),
];
