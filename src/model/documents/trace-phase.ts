import { z } from 'zod';
import { stageKinds } from '../record.js';

/** Kind of a phase; "outside" is what ran in no marked phase (warm-up and loading are kinds of their own). */
export const phaseKinds = [...stageKinds, 'outside'] as const;
export const phaseKindSchema = z.enum(phaseKinds);
export type PhaseKind = z.infer<typeof phaseKindSchema>;
