import type { BenchCapture, BenchExecution } from '../capture/bench/run-bench.js';
import type { Issue } from '../model/document.js';
import { InferscopeError, messageOf } from '../model/errors.js';
import type { Capture, Execution } from '../model/manifest.js';
import type { ModelLine } from '../model/record.js';
import { redactCommand } from '../model/redaction.js';
import { saveRecord, mergeIssues, sampledCapture } from '../record/save-record.js';
import type { Recording } from '../record/record-session.js';

export interface ImportedBench {
  executions: Execution[];
  captures: Capture[];
  issues: Issue[];
  /** As the engine's own process reported it. */
  model: ModelLine | null;
}

/** Imports the results of a benchmark into the session's tables and saves records and logs as artifacts. */
export async function importBench(recording: Recording, capture: BenchCapture): Promise<ImportedBench> {
  const imported: ImportedBench = { executions: [], captures: [], issues: [...capture.issues], model: null };
  for (const execution of capture.executions) await importExecution(recording, execution, imported);
  if (capture.stopped) {
    const text = 'The benchmark was stopped early: fewer repeats than requested.';
    imported.issues.push({ code: 'interrupted', severity: 'warning', text });
  }
  imported.issues = mergeIssues(imported.issues);
  return imported;
}

async function importExecution(
  recording: Recording,
  execution: BenchExecution,
  imported: ImportedBench,
): Promise<void> {
  const { variant, recordPath, launches } = execution;
  const { execution_id } = variant;
  const { originNs: origin, secrets, redact } = recording;
  imported.executions.push({
    execution_id,
    purpose: 'clean',
    command: redactCommand(
      [variant.prepared.name, ...Object.entries(variant.engine_args).map((pair) => pair.join('='))],
      secrets,
    ),
    exit_code: launches.some(({ failure }) => failure !== null) ? null : 0,
    start_ns: execution.start_ns - origin,
    end_ns: execution.end_ns - origin,
  });
  const { record, capture } = await saveRecord(recording, execution_id, recordPath);
  imported.model ??= record.model;
  imported.issues.push(...record.issues);
  imported.captures.push(capture);

  const samplers = new Set<string>();
  for (const { launch, sampled, issues, log, failure } of launches) {
    for (const id of sampled) samplers.add(id);
    imported.issues.push(...issues);
    const where = `launch ${launch + 1} of ${variant.label}`;
    if (failure !== null && !isInterruption(failure)) {
      const text = redact(`${where} stopped early: ${failureWords(failure)}`);
      imported.issues.push({ code: 'launch_failed', severity: 'error', text });
    }
    if (log !== null && log !== '')
      await recording.files.addArtifact(Buffer.from(redact(log)), {
        kind: 'log',
        captureId: capture.capture_id,
        name: `${execution_id}-launch-${launch + 1}.log`,
      });
  }
  imported.captures.push(...[...samplers].map((id) => sampledCapture(id, execution_id)));
}

export function isInterruption(failure: unknown): boolean {
  return failure instanceof InferscopeError && failure.code === 'E_INTERRUPTED';
}

function failureWords(failure: unknown): string {
  return failure instanceof InferscopeError
    ? `${failure.parts.what}. ${failure.parts.why}`
    : messageOf(failure);
}
