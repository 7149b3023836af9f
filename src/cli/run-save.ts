import type { RunCapture, RunExecution } from '../capture/run/run-options.js';
import { unseenKernels } from '../capture/run/unseen-kernels.js';
import { noKernelsIssue } from '../import/importer.js';
import type { Execution } from '../model/manifest.js';
import { importCaptures, type ImportedCaptures } from './import-captures.js';
import type { Progress } from './progress.js';
import { configuredStageNames } from './stage-names.js';
import { sampledCapture } from '../record/save-record.js';
import type { Recording } from '../record/record-session.js';
import { formatPercent } from '../vocabulary/format.js';

/**
 * Saves the executions' output in the session: logs as artifacts, captures through their importers, telemetry as rows.
 * The file of an unreadable capture is saved; after `unread` aborts, captures are saved unread, except the
 * workload's record.
 */
export async function saveRun(
  { files: session, zero, originNs, redact, append }: Recording,
  capture: RunCapture,
  { progress, unread, part }: { progress: Progress; unread: AbortSignal; part: boolean },
): Promise<ImportedCaptures> {
  const executions = capture.executions.map((execution) => executionRow(execution, originNs));
  for (const { execution_id, files } of capture.executions) {
    for (const { path, kind } of files) {
      if (kind === 'stdout' || kind === 'stderr')
        await session.addArtifact(path, { kind, captureId: execution_id, name: `${kind}.log` });
    }
  }
  const imported = await importCaptures(
    session,
    capture.executions.flatMap(({ execution_id, files }) =>
      files
        .filter(({ kind }) => kind !== 'stdout' && kind !== 'stderr')
        .map(({ path, kind }) => ({
          path,
          kind,
          execution: executions.find((execution) => execution.execution_id === execution_id)!,
        })),
    ),
    {
      zero: { realtime_ns: BigInt(zero.realtime_ns), monotonic_ns: originNs },
      stageNames: await configuredStageNames(),
      redact,
      keepRaw: true,
      part,
      tolerant: true,
      signal: unread,
      onProgress: (file, share) => progress.update(`reading ${file}`, formatPercent(share)),
    },
  );
  imported.executions = executions;
  const nsys = capture.executions.find(({ execution_id }) => execution_id === 'nsys');
  if (nsys && imported.issues.some(({ code }) => code === noKernelsIssue) && !capture.stopped)
    nsys.failure ??= unseenKernels(nsys);
  for (const execution of capture.executions) saveTelemetry(append, execution, imported);
  imported.issues.push(...capture.issues);
  return imported;
}

function executionRow(execution: RunExecution, originNs: number): Execution {
  return {
    execution_id: execution.execution_id,
    purpose: execution.purpose,
    command: execution.command,
    ...(execution.tool && execution.tool.command.length > 0 ? { tool_command: execution.tool.command } : {}),
    exit_code: execution.exit_code,
    start_ns: execution.start_ns - originNs,
    end_ns: execution.end_ns - originNs,
  };
}

function saveTelemetry(
  append: Recording['append'],
  { execution_id, telemetry, memory, issues, failure, timedOut, signal }: RunExecution,
  imported: ImportedCaptures,
): void {
  append({ telemetry, memory });
  const captureIds = new Set([...telemetry, ...memory].map((row) => row.capture_id!));
  imported.captures.push(...[...captureIds].map((id) => sampledCapture(id, execution_id)));
  imported.issues.push(...issues);
  if (failure) {
    const how = timedOut ? 'timed out' : signal ? `killed by ${signal}` : 'failed';
    const text = `The ${execution_id} execution ${how}: ${failure.parts.what}. ${failure.parts.why}`;
    imported.issues.push({ code: 'execution_failed', severity: 'error', text });
  }
}
