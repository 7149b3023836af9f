import { monotonicClock } from '../model/clock.js';
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Issue } from '../model/document.js';
import { InferscopeError } from '../model/errors.js';
import { nestedSession } from '../model/outer-run.js';
import {
  type ModelLine,
  recordLineSchema,
  recordLineTypes,
  type RecordLine,
  type RequestLine,
} from '../model/record.js';
import type { Row, TableSink } from '../model/tables.js';
import type { ImportTarget } from '../model/workbench.js';
import { type HookedStep, warmupSteps } from './hooked-steps.js';
import { microbenchmarkRow } from './microbenchmark-row.js';
import type { CaptureFacts, ImportContext, Importer, ImportOutcome } from './importer.js';
import type { StageCall } from './ort-trace.js';
import type { IssueCode } from '../model/issue-codes.js';

export interface RecordOutcome extends ImportOutcome {
  model: ModelLine | null;
  /** Prefill and decode calls by process, in order, warm-up included. */
  callsByPid: Map<number, StageCall[]>;
  clockPairs: { monotonic_ns: string; realtime_ns: string }[];
  errors: { code: string; text: string }[];
  /** Sizes of the requests, each null where they differ; null without requests. */
  sizes: RequestSizes | null;
}

export interface RequestSizes {
  batch_size: number | null;
  input_len: number | null;
  output_len: number | null;
}

/** Reads the recording protocol (docs/reference/recording-protocol.md): {"v":1,"type":"stage","execution_id":"clean",…} per line. */
export const recordImporter = {
  name: 'inferscope-record',
  sniff: (firstBytes: string) => /^\{"v":\s*\d+,/.test(firstBytes),
  async facts(path: string) {
    const lines = createInterface({ input: createReadStream(path, 'utf8'), crlfDelay: Infinity });
    for await (const text of lines) {
      const line = parseLine(text, path, 1, true);
      const realtime_zero_ns =
        typeof line === 'object' && line.type === 'clock' ? realtimeOfMonotonicZero(line) : null;
      lines.close();
      // A workload without a profiler uses this execution name; the time of such an execution includes no profiler overhead.
      const clean = typeof line === 'object' && line.execution_id === 'clean';
      return { ...recordFacts, realtime_zero_ns, purpose: clean ? ('clean' as const) : recordFacts.purpose };
    }
    return recordFacts;
  },
  async load(
    path: string,
    { sink }: Pick<ImportTarget, 'sink'>,
    context: ImportContext,
  ): Promise<RecordOutcome> {
    const outcome: RecordOutcome = {
      clock: monotonicClock,
      issues: [],
      model: null,
      callsByPid: new Map(),
      clockPairs: [],
      errors: [],
      sizes: null,
    };
    const state: State = {
      stageId: 0,
      lineNumber: 0,
      originNs: context.zero.monotonic_ns,
      skipped: { cutOff: 0, newer: 0, unknown: 0 },
      hooked: [],
      prompts: { padding: 0, positions: 0 },
    };
    const lines = createInterface({ input: createReadStream(path, 'utf8'), crlfDelay: Infinity });
    let pending: string | null = null;
    let linesRead = 0;
    for await (const line of lines) {
      if (pending !== null) readLine(pending, false);
      pending = line;
    }
    if (pending !== null) readLine(pending, true);
    const { padding, positions } = state.prompts;
    if (outcome.model?.facts && positions > 0)
      outcome.model = {
        ...outcome.model,
        facts: { ...outcome.model.facts, padding_share: padding / positions },
      };
    const warmup = warmupSteps(state.hooked);
    for (const step of state.hooked)
      sink.append('stages', { ...step.row, warmup: step.row.warmup || warmup.has(step) });
    if (state.hooked.length > 0) outcome.issues.push(hookStagesIssue(state.hooked.length));
    if (linesRead === 0 && state.skipped.newer > 0) throw newerRecord(path, state.skipped.newer);
    outcome.issues.push(...skippedLinesIssues(state.skipped));
    return outcome;

    function readLine(line: string, last: boolean): void {
      state.lineNumber++;
      if (line.trim() === '') return;
      const parsed = parseLine(line, path, state.lineNumber, last);
      if (typeof parsed === 'string') state.skipped[parsed]++;
      else {
        linesRead++;
        put(parsed, sink, context, outcome, state);
      }
    }
  },
} satisfies Importer<RecordOutcome>;

const recordFacts: CaptureFacts = {
  tool: { name: 'inferscope', version: null },
  realtime_zero_ns: null,
  command: null,
  hardware: {},
  software: {},
  purpose: 'profiled',
};

function realtimeOfMonotonicZero({ t_ns, realtime_ns }: { t_ns: number; realtime_ns: string }): bigint {
  return BigInt(realtime_ns) - BigInt(t_ns);
}

function commonSizes(before: RequestSizes | null, line: RequestSizes): RequestSizes {
  const sharedSize = (size: keyof RequestSizes) =>
    before === null || before[size] === line[size] ? line[size] : null;
  return {
    batch_size: sharedSize('batch_size'),
    input_len: sharedSize('input_len'),
    output_len: sharedSize('output_len'),
  };
}

/** Skipped lines, by reason. */
interface SkippedLines {
  /** A process killed during a write leaves its last line truncated. */
  cutOff: number;
  /** Newer protocol versions. */
  newer: number;
  /** Newer types, or types of the workload. */
  unknown: number;
}

interface State {
  /** Prompts with an attention mask on the host. */
  prompts: { padding: number; positions: number };
  /** Steps of hooks with their rows, written at the end, because warm-up is known only from all of them. */
  hooked: (HookedStep & { row: Row<'stages'> })[];
  stageId: number;
  lineNumber: number;
  /** CLOCK_MONOTONIC at the session's time 0, ns; null until a line has it. */
  originNs: number | null;
  skipped: SkippedLines;
}

/** @returns the line, or the reason for skipping and counting it; any other invalid line is an error */
function parseLine(
  line: string,
  path: string,
  lineNumber: number,
  last: boolean,
): RecordLine | keyof SkippedLines {
  let json: unknown;
  try {
    json = JSON.parse(line);
  } catch (error) {
    if (last) return 'cutOff';
    throw invalidLine(path, lineNumber, 'it is not JSON', error);
  }
  const checked = recordLineSchema.safeParse(json);
  if (checked.success) return checked.data;
  const { v, type } = (json ?? {}) as { v?: unknown; type?: unknown };
  if (typeof v === 'number' && v > 1) return 'newer';
  if (v === 1 && typeof type === 'string' && !recordLineTypes.includes(type)) return 'unknown';
  const [first] = checked.error.issues;
  throw invalidLine(path, lineNumber, `${first?.path.join('.') || 'line'}: ${first?.message}`, checked.error);
}

function newerRecord(path: string, lines: number): InferscopeError {
  return new InferscopeError('E_TRACE_NEWER', {
    what: `${path} was recorded by a newer inferscope`,
    why: `All of its lines (${lines}) are of a newer recording protocol; this inferscope reads version 1.`,
    fix: 'Update inferscope, in its clone: git pull && npm ci && npm run build',
  });
}

function invalidLine(path: string, lineNumber: number, why: string, cause: unknown): InferscopeError {
  return new InferscopeError(
    'E_RECORD_FILE',
    {
      what: `line ${lineNumber} of ${path} is not a record line`,
      why,
      fix: 'See docs/reference/recording-protocol.md for the line types.',
    },
    { cause },
  );
}

function skippedLinesIssues(skipped: SkippedLines): Issue[] {
  const texts: Record<keyof SkippedLines, [code: IssueCode, text: string]> = {
    cutOff: [
      'record_cut_off',
      'The last line of the record is cut off: its process exited while writing it.',
    ],
    newer: ['record_newer', 'Lines of a newer recording protocol were skipped; update inferscope.'],
    unknown: ['record_unknown_type', 'Lines of an unknown type were skipped.'],
  };
  return (Object.keys(texts) as (keyof SkippedLines)[])
    .filter((reason) => skipped[reason] > 0)
    .map((reason) => {
      const [code, text] = texts[reason];
      return { code, severity: 'warning', text, count: skipped[reason] };
    });
}

type LineKeys = Pick<Row<'stages'>, 'execution_id' | 'capture_id' | 'host' | 'pid' | 'rank'>;

/** Writes a line into its table or the outcome. */
function put(
  line: RecordLine,
  sink: TableSink,
  context: ImportContext,
  outcome: RecordOutcome,
  state: State,
): void {
  const keys: LineKeys = {
    execution_id: context.execution_id,
    capture_id: context.capture_id,
    host: context.host,
    pid: line.pid,
    rank: line.rank,
  };
  // A record that is imported alone starts with its clock line; without it the first line is time 0.
  state.originNs ??=
    line.type === 'clock' && context.zero.realtime_ns !== null
      ? Number(context.zero.realtime_ns - realtimeOfMonotonicZero(line))
      : line.t_ns;
  const originNs = state.originNs;
  const sessionNs = (monotonicNs: number) => monotonicNs - originNs;
  switch (line.type) {
    case 'model':
      outcome.model ??= line;
      return;
    case 'clock':
      outcome.clockPairs.push({ monotonic_ns: String(line.t_ns), realtime_ns: line.realtime_ns });
      return;
    case 'error':
      outcome.errors.push({ code: line.code, text: line.text });
      outcome.issues.push({ code: 'workload_error', severity: 'error', text: `${line.code}: ${line.text}` });
      return;
    case 'session': {
      const verb = ['bench', 'profile', 'run', 'import'].includes(line.kind) ? 'explain' : 'report';
      const text = `The program saved its own session (${line.kind}): inferscope ${verb} ${line.id}`;
      outcome.issues.push({ code: nestedSession, severity: 'info', text });
      return;
    }
    case 'stage':
      putStage(line, keys, sessionNs, sink, outcome, state);
      return;
    case 'request': {
      outcome.sizes = commonSizes(outcome.sizes, line);
      const ttft_ns = line.first_token_ns === null ? null : line.first_token_ns - line.t_ns;
      sink.append('iterations', {
        ...keys,
        iteration: line.iteration,
        launch: line.launch,
        warmup: line.warmup,
        batch_size: line.batch_size,
        input_len: line.input_len,
        output_len: line.output_len,
        start_ns: sessionNs(line.t_ns),
        end_ns: sessionNs(line.end_ns),
        ttft_ns,
        tpot_ns: tpotOf(line),
        point: line.point,
      });
      return;
    }
    case 'point': {
      const { point, launch, text, warmup_iterations, stable, interleaved } = line;
      const { memory_bytes, memory_source } = line;
      const how = { outcome: line.outcome, text, warmup_iterations, stable, interleaved };
      sink.append('points', { ...keys, point, launch, ...how, memory_bytes, memory_source });
      return;
    }
    case 'microbenchmark':
      sink.append('microbenchmarks', { ...keys, ...microbenchmarkRow(line, sessionNs) });
      return;
    case 'device_work': {
      const { point, launch, kind, stages, kernels, kernel_ns, copies, copy_ns, busy_ns, wall_ns } = line;
      const work = { stages, kernels, kernel_ns, copies, copy_ns, busy_ns, wall_ns };
      sink.append('device_work', { ...keys, point, launch, kind, ...work });
      return;
    }
    case 'telemetry': {
      const { scope, metric, value } = line;
      sink.append('telemetry', { ...keys, t_ns: sessionNs(line.t_ns), scope, metric, value });
      return;
    }
    case 'memory':
      sink.append('memory', {
        ...keys,
        device: line.device,
        t_ns: sessionNs(line.t_ns),
        kind: line.kind,
        bytes: line.bytes,
        point: line.point,
        source: line.source,
        blocks: line.blocks,
      });
      return;
  }
}

/** Steps of hooks are kept in `state`, the other stages are written. */
function putStage(
  line: Extract<RecordLine, { type: 'stage' }>,
  keys: LineKeys,
  sessionNs: (monotonicNs: number) => number,
  sink: TableSink,
  outcome: RecordOutcome,
  state: State,
): void {
  const stage = {
    stage_id: state.stageId++,
    start_ns: sessionNs(line.t_ns),
    end_ns: sessionNs(line.end_ns),
  };
  if (line.kind === 'prefill' || line.kind === 'decode') {
    const calls = outcome.callsByPid.get(line.pid) ?? [];
    calls.push(stage);
    outcome.callsByPid.set(line.pid, calls);
  }
  const row: Row<'stages'> = {
    ...keys,
    ...stage,
    tid: line.pid,
    phase_id: line.kind === 'other' ? null : stage.stage_id,
    kind: line.kind,
    raw_name: line.name,
    step_index: line.step,
    iteration: line.iteration,
    batch_size: line.batch_size,
    new_tokens: line.new_tokens,
    context_tokens_sum: line.context_tokens_sum,
    warmup: line.warmup || line.kind === 'warmup',
    padding_tokens: line.padding_tokens,
    device_start_ns: line.device_start_ns === null ? null : sessionNs(line.device_start_ns),
    device_dur_ns: line.device_dur_ns,
  };
  if (line.padding_tokens !== null && line.new_tokens !== null) {
    state.prompts.padding += line.padding_tokens;
    state.prompts.positions += line.new_tokens;
  }
  if (line.marked_by === 'hooks' && line.kind !== 'load')
    state.hooked.push({
      kind: line.kind,
      iteration: line.iteration,
      step_index: line.step,
      batch_size: line.batch_size,
      new_tokens: line.new_tokens,
      context_tokens_sum: line.context_tokens_sum,
      hook: line.first_of_shape ? 'first' : 'hook',
      row,
    });
  else sink.append('stages', row);
}

/** Code of the issue that names the recorder of the steps. */
const hooksIssue = 'stages_from_hooks';

function hookStagesIssue(steps: number): Issue {
  const text = `The hooks of inferscope run marked ${steps} steps that the program does not mark. In kinds with several calls, the first call with each size counts as warm-up, and the first iteration of a repeated context can. run --no-hooks records without hooks.`;
  return { code: hooksIssue, severity: 'info', text, count: steps };
}

function tpotOf({ tpot_ns, output_len, first_token_ns, end_ns }: RequestLine): number | null {
  if (tpot_ns !== null) return tpot_ns;
  return output_len > 1 && first_token_ns !== null ? (end_ns - first_token_ns) / (output_len - 1) : null;
}
