import type { PhaseKind } from '../../../model/documents/trace.js';
import { idleCauses } from '../../../vocabulary/idle-causes.js';
import { barColors, classColors, type Theme } from '../../palette.js';

export function phaseColor(kind: PhaseKind, theme: Theme): string {
  const tone = theme.dark ? 'dark' : 'light';
  if (kind === 'sampling') return classColors.sampling;
  if (kind === 'prefill' || kind === 'mixed') return barColors.roofline[tone];
  return kind === 'decode' ? barColors.serial[tone] : barColors.idle[tone];
}

/** Of what a device did (`phaseParts`): computing, exposed communication and copies, or idle by cause. */
export function partColor(id: string, theme: Theme): string {
  if (id === 'compute') return barColors.roofline[theme.dark ? 'dark' : 'light'];
  if (id === 'communication') return classColors.communication;
  return id === 'copies' ? classColors.copy : idleCauses[id]!.colour;
}
