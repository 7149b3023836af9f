import { z } from 'zod';
import { stageKinds } from '../record.js';

/** Kind of a phase; "outside" is outside of all marked phases (warm-up and loading are their own kinds). */
export const phaseKinds = [...stageKinds, 'outside'] as const;
export const phaseKindSchema = z.enum(phaseKinds);
export type PhaseKind = z.infer<typeof phaseKindSchema>;

/** Kinds in which all ranks work together, most important first: a served model spends most time in decode. */
export const jointKinds = [
  'decode',
  'mixed',
  'prefill',
  'training',
  'outside',
] as const satisfies PhaseKind[];
