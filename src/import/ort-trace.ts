import { unreadableFile } from './trace-file-error.js';
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Issue } from '../model/document.js';
import type { TableSink } from '../model/tables.js';
import type { ImportTarget } from '../model/workbench.js';
import type { ImportContext, Importer, ImportOutcome } from './importer.js';
import { nodeClass, nodeLayer } from './ort-node.js';
import { formatNs, plural } from '../vocabulary/format.js';

/**
 * ONNX Runtime's operator trace (`enableProfiling`), one event per line in a JSON array:
 * {"cat" : "Node","pid" :8881,"tid" :8881,"dur" :113,"ts" :18630,"ph" : "X","name" :"…_kernel_time","args" : {…}},
 * ts and dur are whole microseconds from the runtime's own origin. The nodes of a call come first, then
 * SequentialExecutor::Execute and model_run, which enclose them. Tested with 1.30.0; see docs/concepts/stages-and-clocks.md.
 */
export const ortTraceImporter = {
  name: 'onnxruntime-trace',
  sniff: (firstBytes) => /^\s*\[\s*\{"cat"\s*:\s*"Session"/.test(firstBytes),
  async facts(path) {
    for await (const event of readEvents(path)) if (event) break;
    return {
      tool: { name: 'onnxruntime', version: null },
      realtime_zero_ns: null,
      command: null,
      hardware: {},
      software: {},
      purpose: 'profiled',
    };
  },
  async load(path, { sink }: Pick<ImportTarget, 'sink'>, context: OrtTraceContext): Promise<ImportOutcome> {
    const runs = await scanRuns(path);
    const calls = context.calls ?? callsOfTrace(runs, sink, context);
    const { originNs, errorBoundNs, issues } = alignClock(runs, calls, path);
    await writeRows(path, sink, { ...context, calls }, originNs);
    return {
      clock: { name: 'onnxruntime profiler, µs', resolution_ns: 1000, error_bound_ns: errorBoundNs },
      issues,
    };
  },
} satisfies Importer;

/** A call of the engine, in session time. */
export interface StageCall {
  stage_id: number;
  start_ns: number;
  end_ns: number;
}

export interface OrtTraceContext extends ImportContext {
  /** Recorded calls of the same process, in order, to which the trace's own clock is aligned. */
  calls?: StageCall[];
}

/** Without a record every model call is a stage of unknown kind, and the trace's clock is the session's. */
function callsOfTrace(runs: Run[], sink: TableSink, context: ImportContext): StageCall[] {
  const keys = { execution_id: context.execution_id, capture_id: context.capture_id, host: context.host };
  return runs.map(({ startUs, durUs }, stage_id) => {
    const call = { stage_id, start_ns: startUs * 1000, end_ns: (startUs + durUs) * 1000 };
    sink.append('stages', { ...keys, ...call, rank: 0, kind: 'other', raw_name: 'model_run', warmup: false });
    return call;
  });
}

interface Event {
  cat: string;
  name: string;
  ts: number;
  dur: number;
  pid: number;
  tid: number;
  args: Record<string, unknown>;
}

async function* readEvents(path: string): AsyncGenerator<Event> {
  let lineNumber = 0;
  let closed = false;
  for await (const raw of createInterface({ input: createReadStream(path, 'utf8'), crlfDelay: Infinity })) {
    lineNumber++;
    const line = raw.trim();
    if (line === '') continue;
    if (closed)
      throw badTrace(path, `text follows its closing bracket at line ${lineNumber}: two traces in a file?`);
    if (line === '[') continue;
    if (line === ']') {
      closed = true;
      continue;
    }
    const text = line.replace(/^\[/, '').replace(/,$/, '');
    yield parseEvent(text, path, lineNumber);
  }
  if (!closed) throw badTrace(path, 'it has no closing bracket: the file is cut off');
}

function parseEvent(text: string, path: string, lineNumber: number): Event {
  let event: unknown;
  let cause: unknown;
  try {
    event = JSON.parse(text);
  } catch (error) {
    cause = error;
  }
  if (typeof event === 'object' && event !== null && 'cat' in event) return event as Event;
  throw badTrace(path, `line ${lineNumber} is not a trace event`, cause);
}

const badTrace = unreadableFile(
  'operator trace',
  'Record it again; session.endProfiling() must be called before the process exits.',
);

interface Run {
  startUs: number;
  durUs: number;
}

/** First pass: the calls. They carry the clock alignment, and they come after their nodes in the file. */
async function scanRuns(path: string): Promise<Run[]> {
  const runs: Run[] = [];
  for await (const event of readEvents(path)) {
    if (event.cat === 'Session' && event.name === 'model_run') {
      runs.push({ startUs: event.ts, durUs: event.dur });
    }
  }
  return runs;
}

/**
 * Origin of the trace in session time. The nth model_run is the nth call and lies inside it: the origin is at least
 * max(start − ts) and at most min(end − ts − dur); the middle is used, half the width is the error. A run stopped in the
 * middle of a generation traced calls that it did not record: these last ones are dropped and counted.
 */
function alignClock(runs: Run[], calls: StageCall[], path: string) {
  const issues: Issue[] = [];
  const unrecorded = runs.length - calls.length;
  const mismatch = () =>
    badTrace(
      path,
      `it contains ${plural(runs.length, 'call')} of the model, but the record of the same process ${calls.length}`,
    );
  if (unrecorded < 0) throw mismatch();
  if (unrecorded > 0) {
    issues.push({
      code: 'calls_unrecorded',
      severity: 'info',
      text: 'Calls at the end of the operator trace belong to an unfinished repeat and were dropped.',
      count: unrecorded,
    });
  }
  if (calls.length === 0) return { originNs: 0, errorBoundNs: null, issues };
  let low = -Infinity;
  let high = Infinity;
  for (const [index, call] of calls.entries()) {
    const run = runs[index]!;
    low = Math.max(low, call.start_ns - run.startUs * 1000);
    high = Math.min(high, call.end_ns - (run.startUs + run.durUs) * 1000);
  }
  // Truncation to whole microseconds may cross the bounds by a few of them.
  if (high < low - 5000) {
    if (unrecorded > 0) throw mismatch();
    issues.push({
      code: 'clock_skew',
      severity: 'warning',
      text: `The operator trace does not fit the recorded calls: they overlap by ${formatNs(low - high)} at the best alignment.`,
    });
  }
  const errorBoundNs = Math.max(Math.abs(high - low) / 2, 1000);
  return { originNs: Math.round((low + high) / 2), errorBoundNs, issues };
}

/** Second pass: operators in order, and the gaps between them. */
async function writeRows(
  path: string,
  sink: TableSink,
  context: ImportContext & { calls: StageCall[] },
  originNs: number,
): Promise<void> {
  const keys = { execution_id: context.execution_id, capture_id: context.capture_id, host: context.host };
  const toNs = (us: number) => originNs + us * 1000;
  let nodes: Event[] = [];
  let run = 0;
  let opId = 0;
  for await (const event of readEvents(path)) {
    if (event.cat === 'Node' && event.name.endsWith('_kernel_time')) nodes.push(event);
    if (event.cat !== 'Session' || event.name !== 'model_run') continue;
    const call = context.calls[run++];
    if (!call) return;
    const { stage_id } = call;
    const addGap = (start_ns: number, end_ns: number, cause: string, near: Event, before: number | null) => {
      // Negative if two truncated µs overlap: kept, so that operators and gaps sum to the call exactly.
      const dur_ns = end_ns - start_ns;
      if (dur_ns === 0) return;
      const { pid, tid } = near;
      const row = { pid, tid, rank: 0, start_ns, dur_ns, cause, stage_id, before_op_id: before };
      sink.append('gaps', { ...keys, ...row });
    };
    let until = call.start_ns;
    for (const [index, node] of nodes.entries()) {
      const name = node.name.slice(0, -'_kernel_time'.length);
      const opType = String(node.args['op_name'] ?? '');
      const start_ns = toNs(node.ts);
      const dur_ns = node.dur * 1000;
      addGap(until, start_ns, index === 0 ? 'host.runtime_call' : 'host.runtime_dispatch', node, opId);
      until = start_ns + dur_ns;
      sink.append('ops', {
        ...keys,
        pid: node.pid,
        tid: node.tid,
        rank: 0,
        op_id: opId++,
        stage_id,
        name,
        op_type: opType,
        class: nodeClass(opType, name),
        layer: nodeLayer(name),
        start_ns,
        dur_ns,
        self_dur_ns: dur_ns,
        ...shapeColumns(node.args),
        output_bytes: integer(node.args['output_size']),
        parameter_bytes: integer(node.args['parameter_size']),
        provider: String(node.args['provider'] ?? '') || null,
      });
    }
    addGap(until, call.end_ns, 'host.runtime_call', event, null);
    nodes = [];
  }
}

function integer(text: unknown): number | null {
  const value = Number(text);
  return text === undefined || !Number.isSafeInteger(value) ? null : value;
}

/** [{"float":[1,16,64]},…] -> shapes and types. */
function shapeColumns(args: Record<string, unknown>) {
  const list = (field: string) =>
    Array.isArray(args[field]) ? (args[field] as Record<string, number[]>[]) : null;
  const inputs = list('input_type_shape');
  const outputs = list('output_type_shape');
  const dims = (values: Record<string, number[]>[] | null) =>
    values && JSON.stringify(values.map((value) => Object.values(value)[0] ?? []));
  return {
    input_shapes: dims(inputs),
    output_shapes: dims(outputs),
    input_types: inputs && JSON.stringify(inputs.map((value) => Object.keys(value)[0] ?? '')),
  };
}
