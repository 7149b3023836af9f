import { mkdirSync, rmSync } from 'node:fs';
import { InferscopeError } from '../../model/errors.js';
import { partHome, readPart, writePart } from '../../record/ranks/part.js';
import { recordSession } from '../../record/record-session.js';
import { importCaptures } from '../import-captures.js';
import { configuredStageNames } from '../stage-names.js';

/** One file of `import --ranks`, and the folder for its session. */
export interface PartOrder {
  file: string;
  folder: string;
  keepRaw: boolean;
}

/**
 * Imports one file as `import` does and writes the result to its folder, which is emptied first: an interrupted import starts again. A file
 * with a result is not imported again: Slurm repeats all orders of a requeued task.
 */
export async function importPart({ file, folder, keepRaw }: PartOrder, signal?: AbortSignal): Promise<void> {
  if (readPart(folder) !== null) return;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const home = partHome(folder);
  try {
    const stageNames = await configuredStageNames();
    const plan = { label: 'rank', kind: 'import', doing: 'save the rank', home };
    const { id, ...imported } = await recordSession(plan, async ({ files, redact }) => {
      const options = { stageNames, keepRaw, redact, part: true, ...(signal && { signal }) };
      const { captures, executions, hardware, software, issues, rank, worldSize, zeroRealtimeNs, calls } =
        await importCaptures(files, [{ path: file }], options);
      return {
        title: 'rank',
        status: 'complete',
        elsewhere: { startedAt: new Date(0) },
        hardware,
        software,
        executions,
        captures,
        issues,
        result: {
          software,
          rank,
          world_size: worldSize,
          zero_ns: zeroRealtimeNs?.toString() ?? null,
          ...calls!,
        },
      };
    });
    writePart(folder, { id, ...imported });
  } catch (error) {
    if (!(error instanceof InferscopeError) || error.code === 'E_INTERRUPTED') throw error;
    const { what, why } = error.parts;
    writePart(folder, { failed: { what, why } });
  }
}
