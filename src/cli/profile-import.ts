import { existsSync } from 'node:fs';
import type { CachedRoofline } from '../capture/onnx/machine-roofline.js';
import { failureText, type ProfileCapture, type ProfiledExecution } from '../capture/onnx/profile.js';
import { packageVersion } from '../hardware/environment.js';
import { type OrtTraceContext, ortTraceImporter } from '../import/ort-trace.js';
import type { Issue } from '../model/document.js';
import { InferscopeError } from '../model/errors.js';
import type { Capture, Execution } from '../model/manifest.js';
import { saveRecord, mergeIssues, sampledCapture } from '../record/save-record.js';
import type { Recording } from '../record/record-session.js';
import type { SessionFiles } from '../session/session-files.js';
import { saveRoofline } from './save-roofline.js';
import { plural } from '../vocabulary/format.js';

interface ImportedProfile {
  executions: Execution[];
  captures: Capture[];
  issues: Issue[];
}

type Target = Pick<Recording, 'files' | 'originNs' | 'append'>;

const host = 'localhost';

/** Imports the capture into the session's tables and saves the raw files as artifacts. */
export async function importProfile(
  recording: Target,
  capture: ProfileCapture,
  roofline: CachedRoofline,
): Promise<ImportedProfile> {
  const imported: ImportedProfile = { executions: [], captures: [], issues: [] };
  for (const execution of [capture.clean, capture.profiled]) {
    if (!execution || !existsSync(execution.recordPath)) continue;
    await importExecution(recording, execution, imported);
  }
  await saveRoofline(recording.files, roofline, imported);
  imported.issues = mergeIssues([...imported.issues, ...captureIssues(capture)]);
  return imported;
}

async function importExecution(
  session: Target,
  execution: ProfiledExecution,
  imported: ImportedProfile,
): Promise<void> {
  const { executionId, recordPath, runs } = execution;
  const clean = executionId === 'clean';
  const { files, originNs } = session;
  imported.executions.push({
    execution_id: executionId,
    purpose: executionId,
    command: ['embedded engine'],
    exit_code: execution.runs.some((run) => run.failure !== null) ? null : 0,
    start_ns: execution.start_ns - originNs,
    end_ns: execution.end_ns - originNs,
  });
  const { record, capture } = await saveRecord(session, executionId, recordPath);
  imported.captures.push(capture);
  imported.issues.push(...record.issues);
  for (const run of runs) {
    if (run.tracePath === null) continue;
    const captureId = `${executionId}-trace`;
    const calls = record.callsByPid.get(run.pid) ?? [];
    const zero = { realtime_ns: null, monotonic_ns: originNs };
    const context = { execution_id: executionId, capture_id: captureId, host, zero, calls };
    await importTrace(files, run.tracePath, context, imported);
    await files.addArtifact(run.tracePath, { kind: 'ort-trace', captureId, name: 'ort-trace.json' });
  }
  for (const { host: recording } of runs) {
    session.append(recording);
    // The profiled pass is for attribution only: host noise in it affects no figure.
    if (clean) imported.issues.push(...recording.issues);
  }
  if (runs.length > 0) imported.captures.push(sampledCapture(`${executionId}-host`, executionId));
}

/** An unreadable trace loses the attribution but not the measured times. */
async function importTrace(
  session: SessionFiles,
  path: string,
  context: OrtTraceContext,
  imported: ImportedProfile,
): Promise<void> {
  const { capture_id, execution_id } = context;
  try {
    const trace = await ortTraceImporter.load(path, session, context);
    const version = packageVersion('onnxruntime-node');
    imported.captures.push({
      capture_id,
      execution_id,
      tool: { name: 'onnxruntime', version },
      importer: ortTraceImporter.name,
      clock: trace.clock,
    });
    imported.issues.push(...trace.issues);
  } catch (error) {
    if (!(error instanceof InferscopeError)) throw error;
    const text = `The operator trace could not be read, so no time is attributed: ${error.parts.why}`;
    imported.issues.push({ code: 'trace_unreadable', severity: 'error', text });
  }
}

function captureIssues({ clean, failure, stopped, profiled, ...capture }: ProfileCapture): Issue[] {
  const issues: Issue[] = [];
  if (failure !== null) issues.push({ code: 'ended_early', severity: 'error', text: failureText(failure) });
  if (stopped) {
    issues.push({
      code: 'interrupted',
      severity: 'warning',
      text: 'The run was stopped early: fewer repeats than requested.',
    });
  }
  const unstable = clean.runs.filter((run) => run.failure === null && !run.stable).length;
  if (unstable > 0) {
    issues.push({
      code: 'warmup_unstable',
      severity: 'warning',
      text: `Warm-up did not settle within 5 % in ${unstable} of ${clean.runs.length} launches.`,
    });
  }
  if (profiled && capture.profiledOutputLen < capture.outputLen) {
    issues.push({
      code: 'trace_shortened',
      severity: 'info',
      text: `The profiled pass generated ${capture.profiledOutputLen} of ${plural(capture.outputLen, 'token')} to limit the size of its trace; overhead is computed over the same steps.`,
    });
  }
  return issues;
}
