import { z } from 'zod';
import { stageKinds } from '../record.js';

/** Kind of a phase; "outside" is what ran in no marked phase (warm-up and loading are kinds of their own). */
export const phaseKinds = [...stageKinds, 'outside'] as const;
export const phaseKindSchema = z.enum(phaseKinds);
export type PhaseKind = z.infer<typeof phaseKindSchema>;

/** Kinds in which all ranks work together, most important first: a served model spends most of its time in decode. */
export const stepKinds = ['decode', 'mixed', 'prefill', 'training', 'outside'] as const satisfies PhaseKind[];
