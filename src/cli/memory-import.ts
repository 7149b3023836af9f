import { existsSync, writeFileSync } from 'node:fs';
import type { MemoryRun } from '../capture/memory/run-memory.js';
import type { MemoryTarget } from '../capture/memory/memory-target.js';
import { parseVllmLog } from '../import/vllm-log/parse.js';
import type { Recording } from '../record/record-session.js';
import { importBench, type ImportedBench } from './bench-import.js';

/** Imports records, samples, logs and other files of the run into the session. */
export async function importMemory(
  recording: Recording,
  run: MemoryRun,
  target: MemoryTarget,
): Promise<ImportedBench> {
  const [execution] = run.bench.executions;
  const { recordPath, launches } = execution!;
  // A process that failed to start has no record.
  if (!existsSync(recordPath)) writeFileSync(recordPath, '');
  const imported = await importBench(recording, run.bench);
  const { files, redact } = recording;
  recording.append(run.rows);
  for (const { name, tool } of target.sources) {
    const capture = imported.captures.find(({ capture_id }) => capture_id.endsWith(`-${name}`));
    if (capture) Object.assign(capture, { tool, importer: name });
  }
  const leftovers = await target.readLeftovers();
  for (const { kind, name, text } of leftovers) {
    await files.addArtifact(Buffer.from(redact(text)), { kind, captureId: null, name });
  }
  const logs = leftovers.filter(({ kind }) => kind === 'log').map(({ text }) => text);
  const text = [...launches.map(({ log }) => log ?? ''), ...logs].join('\n');
  if (/vllm/i.test(text)) {
    await recording.saveJson('vllm-log-facts', parseVllmLog(redact(text)));
  }
  return imported;
}
