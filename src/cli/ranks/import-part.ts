import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { InferscopeError } from '../../model/errors.js';
import { knownBySources, writeCalls } from '../../record/ranks/calls.js';
import { recordSession } from '../../record/record-session.js';
import { homeFolders } from '../../session/home.js';
import { openSession } from '../../session/open.js';
import { importCaptures } from '../import-captures.js';
import { configuredStageNames } from '../stage-names.js';

/** One file of `import --ranks`, and the folder that its session goes to. */
export interface PartOrder {
  file: string;
  folder: string;
  keepRaw: boolean;
}

const partSchema = z.union([
  z.object({
    id: z.string(),
    zero_ns: z.string().nullable(),
    rank: z.number().nullable(),
    world_size: z.number().nullable(),
    software: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
    known_by: z.enum(knownBySources),
    calls: z.number(),
    processes: z.number(),
    first_rank: z.number(),
  }),
  z.object({ failed: z.object({ what: z.string(), why: z.string() }) }),
]);

/** The session that the import of a file made, or why there is none. */
export type Part = z.infer<typeof partSchema>;

export const partHome = (folder: string) => homeFolders({ INFERSCOPE_HOME: folder });
const partPath = (folder: string): string => join(folder, 'part.json');

/** Imports one file as `import` does, and notes the result in its folder, which is made anew: what was stopped there begins again. */
export async function importPart({ file, folder, keepRaw }: PartOrder, signal?: AbortSignal): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const home = partHome(folder);
  const note = (part: Part) => {
    writeFileSync(`${partPath(folder)}.new`, JSON.stringify(part));
    renameSync(`${partPath(folder)}.new`, partPath(folder));
  };
  try {
    const stageNames = await configuredStageNames();
    const plan = { label: 'rank', kind: 'import', doing: 'save the rank', home };
    const { id, ...found } = await recordSession(plan, async ({ files, redact }) => {
      const options = { stageNames, keepRaw, redact, collectives: true, ...(signal && { signal }) };
      const imported = await importCaptures(files, [{ path: file }], options);
      const { captures, executions, hardware, software, issues, rank, worldSize, zeroRealtimeNs } = imported;
      return {
        title: 'rank',
        status: 'complete',
        elsewhere: { startedAt: new Date(0) },
        hardware,
        software,
        executions,
        captures,
        issues,
        found: { software, rank, world_size: worldSize, zero_ns: zeroRealtimeNs?.toString() ?? null },
      };
    });
    note({ id, ...found, ...(await writeCalls(await openSession(id, home), folder)) });
  } catch (error) {
    if (!(error instanceof InferscopeError) || error.code === 'E_INTERRUPTED') throw error;
    const { what, why } = error.parts;
    note({ failed: { what, why } });
  }
}

/** What is noted in a part's folder; null where its import did not get that far. */
export function readPart(folder: string): Part | null {
  try {
    return partSchema.parse(JSON.parse(readFileSync(partPath(folder), 'utf8')));
  } catch {
    return null;
  }
}
