import { existsSync, readFileSync, statSync } from 'node:fs';
import { z } from 'zod';
import { writeWhole } from '../../model/whole-file.js';

const taskSchema = z.object({
  file: z.string(),
  bytes: z.number(),
  modified_ms: z.number(),
  outcome: z.enum(['pending', 'imported', 'failed', 'skipped']),
  reason: z.string().nullable(),
  /** Folder of its own below the journal's. */
  folder: z.string(),
});

/** One file of `import --ranks`. */
export type RankTask = z.infer<typeof taskSchema>;

/**
 * Tasks of these files; those of an earlier journal that are done stay done while their file is the same. One that was under way
 * keeps its folder, where its result may be by now; one that failed begins anew.
 */
export function planTasks(files: readonly string[], before: readonly RankTask[]): RankTask[] {
  const known = new Map(before.map((task) => [task.file, task]));
  let next = before.reduce((most, { folder }) => Math.max(most, Number(folder.slice(1))), 0);
  return files.map((file) => {
    const { size = 0, mtimeMs = 0 } = statSync(file, { throwIfNoEntry: false }) ?? {};
    const old = known.get(file);
    const same = old?.bytes === size && old.modified_ms === mtimeMs;
    if (old && same && old.outcome === 'imported') return old;
    const folder = old && same && old.outcome === 'pending' ? old.folder : `p${++next}`;
    return { file, bytes: size, modified_ms: mtimeMs, outcome: 'pending', reason: null, folder };
  });
}

/** @returns no tasks where there is no journal, or another version's */
export function readJournal(path: string): RankTask[] {
  if (!existsSync(path)) return [];
  try {
    return z.array(taskSchema).parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch {
    return [];
  }
}

export const writeJournal = (path: string, tasks: readonly RankTask[]): void =>
  writeWhole(path, JSON.stringify(tasks, null, 1));
