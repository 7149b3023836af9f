import { existsSync } from 'node:fs';
import type { CachedRoofline } from '../capture/onnx/machine-roofline.js';
import { failureText, type ProfileCapture, type ProfiledExecution } from '../capture/onnx/profile.js';
import { packageVersion } from '../hardware/environment.js';
import { type OrtTraceContext, ortTraceImporter } from '../import/ort-trace.js';
import { recordImporter } from '../import/record.js';
import type { Issue } from '../model/document.js';
import { InferscopeError } from '../model/errors.js';
import type { Capture, Execution } from '../model/manifest.js';
import { toolVersion } from '../model/version.js';
import type { SessionFiles } from '../session/session-files.js';
import { keepRoofline } from './keep-roofline.js';

export interface ImportedProfile {
  executions: Execution[];
  captures: Capture[];
  issues: Issue[];
}

const host = 'localhost';

/** Imports the capture into the session's tables and saves the raw files as artifacts. */
export async function importProfile(
  session: SessionFiles,
  capture: ProfileCapture,
  { originMonotonicNs, roofline }: { originMonotonicNs: number; roofline: CachedRoofline },
): Promise<ImportedProfile> {
  const imported: ImportedProfile = { executions: [], captures: [], issues: [] };
  for (const execution of [capture.clean, capture.profiled]) {
    if (!execution || !existsSync(execution.recordPath)) continue;
    await importExecution(session, execution, originMonotonicNs, imported);
  }
  await keepRoofline(session, roofline, host, imported);
  imported.issues = merged([...imported.issues, ...captureIssues(capture)]);
  return imported;
}

/** Several launches may report the same issue: report it once with its count. */
function merged(issues: Issue[]): Issue[] {
  const byText = new Map<string, Issue>();
  for (const issue of issues) {
    const key = `${issue.code} ${issue.text}`;
    const known = byText.get(key);
    if (known) known.count = (known.count ?? 1) + (issue.count ?? 1);
    else byText.set(key, { ...issue });
  }
  return [...byText.values()];
}

async function importExecution(
  session: SessionFiles,
  execution: ProfiledExecution,
  originMonotonicNs: number,
  imported: ImportedProfile,
): Promise<void> {
  const { executionId, recordPath, runs } = execution;
  const clean = executionId === 'clean';
  const context = {
    execution_id: executionId,
    capture_id: `${executionId}-record`,
    host,
    zero: { realtime_ns: null, monotonic_ns: originMonotonicNs },
  };
  imported.executions.push({
    execution_id: executionId,
    purpose: executionId,
    command: ['embedded engine'],
    exit_code: execution.runs.some((run) => run.failure !== null) ? null : 0,
    start_ns: execution.start_ns - originMonotonicNs,
    end_ns: execution.end_ns - originMonotonicNs,
  });
  const record = await recordImporter.load(recordPath, session, context);
  imported.captures.push(
    capture(
      `${executionId}-record`,
      executionId,
      'inferscope',
      toolVersion,
      recordImporter.name,
      record.clock,
    ),
  );
  imported.issues.push(...record.issues);
  for (const run of runs) {
    if (run.tracePath === null) continue;
    const captureId = `${executionId}-trace`;
    const calls = record.callsByPid.get(run.pid) ?? [];
    await importTrace(session, run.tracePath, { ...context, capture_id: captureId, calls }, imported);
    await session.addArtifact(run.tracePath, { kind: 'ort-trace', captureId, name: 'ort-trace.json' });
  }
  for (const { host: recording } of runs) {
    for (const row of recording.telemetry)
      session.sink.append('telemetry', { ...row, t_ns: row.t_ns! - originMonotonicNs });
    for (const row of recording.memory)
      session.sink.append('memory', { ...row, t_ns: row.t_ns! - originMonotonicNs });
    // The profiled pass is for attribution only: host noise in it affects no figure.
    if (clean) imported.issues.push(...recording.issues);
  }
  if (runs.length > 0) {
    const clock = { name: 'CLOCK_MONOTONIC', resolution_ns: 1, error_bound_ns: 0 };
    imported.captures.push(
      capture(
        `${executionId}-host`,
        executionId,
        'inferscope host sampler',
        toolVersion,
        'host-sampler',
        clock,
      ),
    );
  }
  await session.addArtifact(recordPath, {
    kind: 'record',
    captureId: `${executionId}-record`,
    name: `${executionId}.jsonl`,
  });
}

/** An unreadable trace loses the attribution but not the measured times. */
async function importTrace(
  session: SessionFiles,
  path: string,
  context: OrtTraceContext,
  imported: ImportedProfile,
): Promise<void> {
  const { capture_id: captureId, execution_id: executionId } = context;
  try {
    const trace = await ortTraceImporter.load(path, session, context);
    const version = packageVersion('onnxruntime-node');
    imported.captures.push(
      capture(captureId, executionId, 'onnxruntime', version, ortTraceImporter.name, trace.clock),
    );
    imported.issues.push(...trace.issues);
  } catch (error) {
    if (!(error instanceof InferscopeError)) throw error;
    const text = `The operator trace could not be read, so no time is attributed: ${error.parts.why}`;
    imported.issues.push({ code: 'trace_unreadable', severity: 'error', text });
  }
}

function capture(
  captureId: string,
  executionId: string,
  tool: string,
  version: string | null,
  importer: string,
  clock: Capture['clock'],
): Capture {
  return { capture_id: captureId, execution_id: executionId, tool: { name: tool, version }, importer, clock };
}

function captureIssues({ clean, failure, stopped, profiled, ...capture }: ProfileCapture): Issue[] {
  const issues: Issue[] = [];
  if (failure !== null) issues.push({ code: 'ended_early', severity: 'error', text: failureText(failure) });
  if (stopped) {
    issues.push({
      code: 'interrupted',
      severity: 'warning',
      text: 'The run was stopped by Ctrl-C: fewer repeats than requested.',
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
      text: `The profiled pass generated ${capture.profiledOutputLen} of ${capture.outputLen} tokens to limit the size of its trace; overhead is computed over the same steps.`,
    });
  }
  return issues;
}
