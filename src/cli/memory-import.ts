import { existsSync, writeFileSync } from 'node:fs';
import type { MemoryRun } from '../capture/memory/run-memory.js';
import type { MemoryTarget } from '../capture/memory/where.js';
import { parseVllmLog } from '../import/vllm-log/parse.js';
import { redactText } from '../model/redaction.js';
import type { SessionFiles } from '../session/session-files.js';
import { importBench, type BenchImportContext, type ImportedBench } from './bench-import.js';

/** Imports records, samples, logs and other files of the run into the session. */
export async function importMemory(
  session: SessionFiles,
  run: MemoryRun,
  target: MemoryTarget,
  context: BenchImportContext,
): Promise<ImportedBench> {
  const [execution] = run.bench.executions;
  const { recordPath, launches } = execution!;
  // A process that failed to start has no record.
  if (!existsSync(recordPath)) writeFileSync(recordPath, '');
  const imported = await importBench(session, run.bench, context);
  const origin = context.originMonotonicNs;
  for (const row of run.rows.telemetry)
    session.sink.append('telemetry', { ...row, t_ns: row.t_ns! - origin });
  for (const row of run.rows.memory) session.sink.append('memory', { ...row, t_ns: row.t_ns! - origin });
  for (const { name, tool } of target.sources) {
    const capture = imported.captures.find(({ capture_id }) => capture_id.endsWith(`-${name}`));
    if (capture) Object.assign(capture, { tool, importer: name });
  }
  const left = await target.leftBehind();
  for (const { kind, name, text } of left) {
    const clean = redactText(text, context.secrets);
    await session.addArtifact(Buffer.from(clean), { kind, captureId: null, name });
  }
  const logs = left.filter(({ kind }) => kind === 'log').map(({ text }) => text);
  const text = [...launches.map(({ log }) => log ?? ''), ...logs].join('\n');
  if (/vllm/i.test(text)) {
    const facts = parseVllmLog(redactText(text, context.secrets));
    const place = { kind: 'vllm-log-facts', captureId: null, name: 'vllm-log-facts.json' };
    await session.addArtifact(Buffer.from(JSON.stringify(facts, null, 2)), place);
  }
  return imported;
}
