import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { type Home, homeFolders } from '../../session/home.js';
import { knownBySources } from './calls.js';
import { writeAtomically } from '../../model/atomic-write.js';

const recordedSchema = z.object({
  id: z.string(),
  zero_ns: z.string().nullable(),
  rank: z.number().nullable(),
  world_size: z.number().nullable(),
  software: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
  /** Name of the machine that recorded it; missing for an imported file. */
  host: z.string().optional(),
  executions: z.array(
    z.object({ execution_id: z.string(), known_by: z.enum(knownBySources), calls: z.number() }),
  ),
  processes: z.number(),
});

const partSchema = z.union([
  recordedSchema,
  z.object({ failed: z.object({ what: z.string(), why: z.string() }) }),
]);

/** The session of a rank, or why there is none. */
export type Part = z.infer<typeof partSchema>;
export type RecordedPart = z.infer<typeof recordedSchema>;

/** A part's session is in its own home. */
export const partHome = (folder: string): Home => homeFolders({ INFERSCOPE_HOME: folder });
const partPath = (folder: string): string => join(folder, 'part.json');

export const writePart = (folder: string, part: Part): void =>
  writeAtomically(partPath(folder), JSON.stringify(part));

/** The note in a part's folder; null if its recording or import did not get that far. */
export function readPart(folder: string): Part | null {
  try {
    return partSchema.parse(JSON.parse(readFileSync(partPath(folder), 'utf8')));
  } catch {
    return null;
  }
}
