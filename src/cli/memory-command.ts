import { relative } from 'node:path';
import process from 'node:process';
import { openSession } from '../session/open.js';
import type { MemoryOptions } from './memory-options.js';
import { defaultProfilePath, ensureWritableFile, reservePath, writeProfile } from './memory-output.js';
import { reportError } from './output.js';
import { measureWithProgress } from './progress.js';
import { showMeasured } from './show-measured.js';

/** Runs `inferscope memory`. Sets the exit code; a run that stopped early has the code of its cause and a partial profile. */
export async function memoryCommand(options: MemoryOptions): Promise<void> {
  const { runMemorySession } = await import('./memory-run.js');
  const requestedPath =
    options.output ?? (options.model === undefined ? null : defaultProfilePath(options.model, new Date()));
  if (requestedPath !== null) ensureWritableFile(requestedPath);
  const saved = await measureWithProgress(options, (signal, progress) =>
    runMemorySession(options, signal, progress),
  );
  const { analyzeMemory } = await import('../facts/memory-profile/memory.js');
  const document = await analyzeMemory(await openSession(saved.id));
  const { profile } = document.data;
  const output = options.output ?? reservePath(requestedPath!);
  await writeProfile(output, profile);
  const results = () => `profile: ${relative(process.cwd(), output) || output}`;
  await showMeasured(saved, { kind: 'memory', document }, options, { printed: profile, results });
  if (!saved.interrupted && saved.failure) process.exitCode = reportError(saved.failure, false);
}
