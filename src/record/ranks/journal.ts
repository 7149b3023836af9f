import { existsSync, readFileSync, statSync } from 'node:fs';
import { z } from 'zod';
import { writeAtomically } from '../../model/atomic-write.js';

const taskSchema = z.object({
  file: z.string(),
  bytes: z.number(),
  modified_ms: z.number(),
  outcome: z.enum(['pending', 'imported', 'failed', 'skipped']),
  reason: z.string().nullable(),
  /** The task's folder inside the journal's. */
  folder: z.string(),
});

/** One file of `import --ranks`. */
export type RankTask = z.infer<typeof taskSchema>;

/**
 * Tasks for these files. Files that an earlier journal has as imported stay imported while they are unchanged; an unfinished one keeps its
 * folder, which may have a result by now; a failed or skipped one starts again.
 */
export function planTasks(files: readonly string[], before: readonly RankTask[]): RankTask[] {
  const tasksByFile = new Map(before.map((task) => [task.file, task]));
  let next = before.reduce((max, { folder }) => Math.max(max, Number(folder.slice(1))), 0);
  return files.map((file) => {
    const { size = 0, mtimeMs = 0 } = statSync(file, { throwIfNoEntry: false }) ?? {};
    const old = tasksByFile.get(file);
    const isUnchanged = old?.bytes === size && old.modified_ms === mtimeMs;
    if (old && isUnchanged && old.outcome === 'imported') return old;
    const folder = old && isUnchanged && old.outcome === 'pending' ? old.folder : `p${++next}`;
    return { file, bytes: size, modified_ms: mtimeMs, outcome: 'pending', reason: null, folder };
  });
}

/** @returns no tasks if there is no journal, or it cannot be read: damaged, or of another version */
export function readJournal(path: string): RankTask[] {
  if (!existsSync(path)) return [];
  try {
    return z.array(taskSchema).parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch {
    return [];
  }
}

export const writeJournal = (path: string, tasks: readonly RankTask[]): void =>
  writeAtomically(path, JSON.stringify(tasks, null, 1));
