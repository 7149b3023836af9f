import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { caseOfTraceFile } from '../engines/onnx/microbenchmark-case.js';
import { ortTraceImporter } from '../import/ort-trace.js';
import type { Issue } from '../model/document.js';
import type { KernelPlan } from '../model/documents/kernels.js';
import { InferscopeError } from '../model/errors.js';
import type { Capture, Execution } from '../model/manifest.js';
import type { SessionFiles } from '../session/session-files.js';
import { importCaptures } from './import-captures.js';
import { host } from './kernels-order.js';

/** Traces of --trace, below the session's scratch folder. */
export const traceFolder = 'traces';
const tracedExecution = 'traced';

interface SavedTraces {
  traces: KernelPlan['traces'];
  executions: Execution[];
  captures: Capture[];
  issues: Issue[];
}

/** Issues about time between cases and missing device activity do not matter here. */
const isReported = ({ code, severity }: Issue) => severity !== 'info' && code !== 'no_device_activity';

/** Imports the traces of --trace; an unreadable one is skipped with an issue. */
export async function saveTraces(
  session: SessionFiles,
  { command, redact }: { command: string[]; redact: (text: string) => string },
): Promise<SavedTraces> {
  const folder = join(session.scratch, traceFolder);
  const names = (await readdir(folder).catch(() => [])).toSorted();
  const result: SavedTraces = { traces: [], executions: [], captures: [], issues: [] };
  if (names.length === 0) return result;
  const execution: Execution = {
    execution_id: tracedExecution,
    purpose: 'profiled',
    command,
    exit_code: 0,
    start_ns: null,
    end_ns: null,
  };
  result.executions.push(execution);
  const torchTraces = names.filter((name) => name.startsWith('torch-'));
  if (torchTraces.length > 0) {
    const imported = await importCaptures(
      session,
      torchTraces.map((name) => ({ path: join(folder, name), execution })),
      { redact, keepRaw: true, tolerant: true },
    );
    result.captures.push(...imported.captures);
    result.issues.push(...imported.issues.filter(isReported));
    result.traces.push(...imported.captures.map(({ capture_id }) => ({ capture_id, case: null })));
  }
  for (const name of names) {
    const caseName = caseOfTraceFile(name);
    if (caseName !== null) await saveOrtTrace(session, join(folder, name), caseName, result);
  }
  return result;
}

async function saveOrtTrace(
  session: SessionFiles,
  path: string,
  caseName: string,
  result: SavedTraces,
): Promise<void> {
  const capture_id = `trace-${result.captures.length}`;
  const context = { execution_id: tracedExecution, capture_id, host };
  const zero = { realtime_ns: null, monotonic_ns: null };
  try {
    const { clock, issues } = await ortTraceImporter.load(path, session, { ...context, zero });
    const { tool } = await ortTraceImporter.facts(path);
    result.captures.push({
      capture_id,
      execution_id: tracedExecution,
      tool,
      importer: ortTraceImporter.name,
      clock,
    });
    result.traces.push({ capture_id, case: caseName });
    result.issues.push(...issues.filter(isReported));
  } catch (error) {
    if (!(error instanceof InferscopeError)) throw error;
    const text = `The trace of ${caseName} could not be read: ${error.parts.what}.`;
    result.issues.push({ code: 'capture_unreadable', severity: 'warning', text });
  }
}
