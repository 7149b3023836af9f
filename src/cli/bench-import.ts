import type { BenchCapture, BenchExecution } from '../capture/bench/run-bench.js';
import { recordImporter } from '../import/record.js';
import type { Issue } from '../model/document.js';
import { InferscopeError, messageOf } from '../model/errors.js';
import type { Capture, Execution } from '../model/manifest.js';
import type { ModelLine } from '../model/record.js';
import { redactCommand, redactText } from '../model/redaction.js';
import { toolVersion } from '../model/version.js';
import type { SessionFiles } from '../session/session-files.js';

export interface ImportedBench {
  executions: Execution[];
  captures: Capture[];
  issues: Issue[];
  /** As the engine's own process reported it. */
  model: ModelLine | null;
}

export interface BenchImportContext {
  host: string;
  originMonotonicNs: number;
  secrets: readonly string[];
}

const monotonic = { name: 'CLOCK_MONOTONIC', resolution_ns: 1, error_bound_ns: 0 };

/** Imports the results of a benchmark into the session's tables and saves records and logs as artifacts. */
export async function importBench(
  session: SessionFiles,
  capture: BenchCapture,
  context: BenchImportContext,
): Promise<ImportedBench> {
  const imported: ImportedBench = { executions: [], captures: [], issues: [...capture.issues], model: null };
  for (const execution of capture.executions) await importExecution(session, execution, context, imported);
  if (capture.stopped) {
    const text = 'The benchmark was stopped by Ctrl-C: fewer repeats than requested.';
    imported.issues.push({ code: 'interrupted', severity: 'warning', text });
  }
  imported.issues = merged(imported.issues);
  return imported;
}

async function importExecution(
  session: SessionFiles,
  execution: BenchExecution,
  context: BenchImportContext,
  imported: ImportedBench,
): Promise<void> {
  const { variant, recordPath, launches } = execution;
  const { execution_id } = variant;
  const origin = context.originMonotonicNs;
  imported.executions.push({
    execution_id,
    purpose: 'clean',
    command: redactCommand(
      [variant.prepared.name, ...Object.entries(variant.engine_args).map((pair) => pair.join('='))],
      context.secrets,
    ),
    exit_code: launches.some(({ failure }) => failure !== null) ? null : 0,
    start_ns: execution.start_ns - origin,
    end_ns: execution.end_ns - origin,
  });
  const capture_id = `${execution_id}-record`;
  const record = await recordImporter.load(recordPath, session, {
    execution_id,
    capture_id,
    host: context.host,
    zero: { realtime_ns: null, monotonic_ns: origin },
  });
  imported.model ??= record.model;
  imported.issues.push(...record.issues);
  imported.captures.push(capture(capture_id, execution_id, 'inferscope', recordImporter.name, record.clock));
  await session.addArtifact(recordPath, {
    kind: 'record',
    captureId: capture_id,
    name: `${execution_id}.jsonl`,
  });

  const samplers = new Set<string>();
  for (const { launch, sampled, issues, log, failure } of launches) {
    for (const id of sampled) samplers.add(id);
    imported.issues.push(...issues);
    const where = `launch ${launch + 1} of ${variant.label}`;
    if (failure !== null && !isInterruption(failure)) {
      const text = redactText(`${where} stopped early: ${failureWords(failure)}`, context.secrets);
      imported.issues.push({ code: 'launch_failed', severity: 'error', text });
    }
    if (log !== null && log !== '')
      await session.addArtifact(Buffer.from(redactText(log, context.secrets)), {
        kind: 'log',
        captureId: capture_id,
        name: `${execution_id}-launch-${launch + 1}.log`,
      });
  }
  for (const id of samplers) {
    const [tool, importer] = id.endsWith('-host')
      ? ['inferscope host sampler', 'host-sampler']
      : ['inferscope GPU sampler', 'device-sampler'];
    imported.captures.push(capture(id, execution_id, tool!, importer!, monotonic));
  }
}

export function isInterruption(failure: unknown): boolean {
  return failure instanceof InferscopeError && failure.code === 'E_INTERRUPTED';
}

function failureWords(failure: unknown): string {
  return failure instanceof InferscopeError
    ? `${failure.parts.what}. ${failure.parts.why}`
    : messageOf(failure);
}

function capture(
  capture_id: string,
  execution_id: string,
  tool: string,
  importer: string,
  clock: Capture['clock'],
): Capture {
  return { capture_id, execution_id, tool: { name: tool, version: toolVersion }, importer, clock };
}

/** Several launches may report the same issue: report it once with its count. */
function merged(issues: readonly Issue[]): Issue[] {
  const byText = new Map<string, Issue>();
  for (const issue of issues) {
    const key = `${issue.code} ${issue.text}`;
    const known = byText.get(key);
    if (known) known.count = (known.count ?? 1) + (issue.count ?? 1);
    else byText.set(key, { ...issue });
  }
  return [...byText.values()];
}
