import { basename } from 'node:path';
import { type Fact, type ImportContext, type ImportOutcome, SharedState } from '../import/importer.js';
import type { RecordOutcome, RequestSizes } from '../import/record.js';
import { ensureSameTime } from '../import/same-time.js';
import type { StageNameRule } from '../import/stage-name-rules.js';
import { unreadableFile } from '../import/trace-file-error.js';
import type { Issue } from '../model/document.js';
import { InferscopeError } from '../model/errors.js';
import type { Capture, Execution } from '../model/manifest.js';
import { missingRanks, type RankFiles } from '../model/ranks.js';
import type { ModelLine } from '../model/record.js';
import { redactCommand, redactJson, redactText, secretsOfCommand } from '../model/redaction.js';
import { withText } from '../model/sentence-template.js';
import { rankOfName } from '../record/ranks/files.js';
import { noCalls, saveCalls, type PartCalls } from '../record/ranks/calls.js';
import type { SessionFiles } from '../session/session-files.js';
import { recognizeFile, type CaptureFile, type RecognizedFile } from './recognize-file.js';
import { redactingSink, type Redact } from './redacting.js';
import { saveRawFile, saveUnreadFile } from './save-raw-file.js';

export interface ImportOptions {
  /** Session time 0 if known to the caller; else the start of the earliest capture. */
  zero?: ImportContext['zero'];
  stageNames?: readonly StageNameRule[];
  /** Values to redact everywhere, e.g. tokens in the program's environment. */
  redact?: (text: string) => string;
  /** Save the raw files as artifacts, in addition to the tables. */
  keepRaw: boolean;
  /** Ids used by earlier captures of the same session. */
  usedCaptureIds?: readonly string[];
  /** The captures are of one rank of a job, or of the ranks of one of its hosts. */
  part?: boolean;
  /** Continue after a bad file (`run`); otherwise the first bad file fails the import. */
  tolerant?: boolean;
  signal?: AbortSignal;
  onProgress?: (file: string, share: number) => void;
}

export interface ImportedCaptures {
  /** Wall clock of the session's time 0, ns since the epoch; null when no capture records it. */
  zeroRealtimeNs: bigint | null;
  executions: Execution[];
  captures: Capture[];
  issues: Issue[];
  hardware: Record<string, Fact>;
  software: Record<string, Fact>;
  /** Facts about the model from the workload's record. */
  model: ModelLine | null;
  sizes: RequestSizes | null;
  /** From the first file that states them. */
  rank: number | null;
  worldSize: number | null;
  /** Collectives, if the captures are a part of a job. */
  calls: PartCalls | null;
  failures: { path: string; error: InferscopeError }[];
}

const host = 'localhost';

/**
 * Imports files of any known format into one session: captures of one or several runs of the same workload.
 * @throws E_USAGE for captures that need a session of their own; E_FORMAT_UNKNOWN, E_TRACE_FILE, E_TOOL_MISSING … unless
 *   `tolerant`
 */
export async function importCaptures(
  session: SessionFiles,
  files: CaptureFile[],
  options: ImportOptions,
): Promise<ImportedCaptures> {
  const imported: ImportedCaptures = {
    zeroRealtimeNs: options.zero?.realtime_ns ?? null,
    executions: [],
    captures: [],
    issues: [],
    hardware: {},
    software: {},
    model: null,
    sizes: null,
    rank: null,
    worldSize: null,
    calls: null,
    failures: [],
  };
  const recognized = await recognizeFiles(session, files, options, imported);
  ensureAlone(recognized, files.length + (options.usedCaptureIds?.length ?? 0));
  for (const file of recognized) imported.issues.push(...clockIssues(file));
  imported.zeroRealtimeNs ??= earliestZero(recognized);
  const zero = options.zero ?? { realtime_ns: imported.zeroRealtimeNs, monotonic_ns: null };
  for (const { file, facts } of recognized)
    // Benchmark figures are compared over long periods.
    if (facts.purpose !== 'results') ensureSameTime(file.path, facts.realtime_zero_ns, zero.realtime_ns);

  const secrets = recognized.flatMap(({ secrets, facts }) => [
    ...secrets,
    ...secretsOfCommand(facts.command ?? []),
  ]);
  const redact = (text: string) => redactText(options.redact?.(text) ?? text, secrets);
  const timeline = recognized.find(({ facts }) => facts.purpose === 'profiled');
  // A partially read capture keeps its id.
  const usedIds = [...(options.usedCaptureIds ?? [])];
  const shared = new SharedState();
  for (const file of recognized) {
    const execution = executionOf(file, timeline ?? file, secrets);
    const captureId = freeId(file, usedIds);
    usedIds.push(captureId);
    await importCapture(session, file, { execution, captureId, zero, shared, redact }, options, imported);
  }
  // Captures added to an existing session are not compared with its earlier ones. A library that recorded its own calls has better data.
  if (options.usedCaptureIds === undefined && session.rows('collectives') === 0)
    await saveRanks(session, imported, options);
  return imported;
}

/** Files with their importers. With `keepRaw`, unreadable files are saved. */
async function recognizeFiles(
  session: SessionFiles,
  files: readonly CaptureFile[],
  options: ImportOptions,
  imported: ImportedCaptures,
): Promise<RecognizedFile[]> {
  const recognized: RecognizedFile[] = [];
  for (const file of files) {
    const result = await orFailure(imported, file.path, options, () => {
      ensureNotInterrupted(file, options.signal);
      return recognizeFile(file, session);
    });
    if (result) recognized.push(result);
    else if (options.keepRaw && file.kind !== 'record') await saveUnreadFile(session, file);
  }
  return recognized;
}

interface CaptureTarget {
  execution: Execution;
  captureId: string;
  zero: ImportContext['zero'];
  shared: SharedState;
  redact: Redact;
}

/** Loads one file into the session's tables and adds its facts to `imported`; a file that cannot be read leaves no rows. */
async function importCapture(
  session: SessionFiles,
  { file, readable, importer, facts, ...saved }: RecognizedFile,
  { execution, captureId, zero, shared, redact }: CaptureTarget,
  options: ImportOptions,
  imported: ImportedCaptures,
): Promise<void> {
  const context: ImportContext = {
    execution_id: execution.execution_id,
    capture_id: captureId,
    host,
    zero,
    shared,
    ...(options.stageNames ? { stageNames: options.stageNames } : {}),
    ...(options.part ? { collectives: true } : { rank: facts.rank ?? rankOfName(file.path) ?? 0 }),
    redact,
    ...(options.signal ? { signal: options.signal } : {}),
    progress: (share) => options.onProgress?.(basename(file.path), share),
  };
  const target = { ...session, sink: redactingSink(session.sink, redact) };
  const outcome = await orFailure(imported, file.path, options, async (): Promise<ImportOutcome> => {
    ensureNotInterrupted(file, options.signal);
    const loaded = await importer.load(readable, target, context);
    if (!isRecord(loaded)) return loaded;
    const record: RecordOutcome = { ...loaded, model: redactJson(loaded.model, redact) };
    return record;
  });
  if (options.keepRaw || importer.keepsFile)
    await saveRawFile(session, { file, ...saved }, captureId, redact);
  if (!outcome) {
    session.forget(captureId);
    return;
  }
  if (!imported.executions.some(({ execution_id }) => execution_id === execution.execution_id))
    imported.executions.push(execution);
  imported.captures.push({
    capture_id: captureId,
    execution_id: execution.execution_id,
    tool: facts.tool,
    importer: importer.name,
    clock: outcome.clock,
  });
  imported.issues.push(...outcome.issues.map((issue) => withText(issue, redact(issue.text))));
  Object.assign(imported.hardware, facts.hardware);
  Object.assign(imported.software, facts.software);
  imported.rank ??= facts.rank ?? null;
  imported.worldSize ??= facts.world_size ?? null;
  if (isRecord(outcome)) {
    imported.model ??= outcome.model;
    imported.sizes ??= outcome.sizes;
  }
}

/** Runs `work` on a file; with `tolerant` an error becomes a failure of the import, and the result is null. */
async function orFailure<T>(
  imported: ImportedCaptures,
  path: string,
  { tolerant = false }: ImportOptions,
  work: () => Promise<T>,
): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    addFailure(imported, path, error, tolerant);
    return null;
  }
}

/** Adds a file that could not be read to failures and issues. @throws the error unless `tolerant` */
function addFailure(imported: ImportedCaptures, path: string, thrown: unknown, tolerant: boolean): void {
  const error = thrown instanceof RangeError ? tooLargeValue(path, thrown) : thrown;
  if (!tolerant || !(error instanceof InferscopeError) || error.code === 'E_DISK_FULL') throw error;
  imported.failures.push({ path, error });
  if (error.code === 'E_INTERRUPTED') {
    const text = `${basename(path)} was not read because of Ctrl-C or a signal; it is saved with the artifacts, and inferscope import can read it.`;
    imported.issues.push({ code: 'capture_unread', severity: 'warning', text });
  } else {
    const text = `${basename(path)} could not be read: ${error.parts.what}. ${error.parts.why}`;
    imported.issues.push({ code: 'capture_unreadable', severity: 'error', text });
  }
}

/** Saves the collectives of captures with several ranks, or of a part of a job. */
async function saveRanks(
  session: SessionFiles,
  imported: ImportedCaptures,
  { part = false }: ImportOptions,
): Promise<void> {
  const saved = await saveCalls(session.workbench, imported.captures, { isPart: part });
  if (part) imported.calls = saved?.calls ?? noCalls;
  if (part || saved === null) return;
  const { ranks } = saved;
  const worldSize = Math.max(imported.worldSize ?? 0, ranks.at(-1)! + 1);
  const rankFiles: RankFiles = {
    world_size: worldSize,
    files: [],
    clocks: [],
    missing: missingRanks(worldSize, (rank) => ranks.includes(rank)),
  };
  await session.addArtifact(Buffer.from(JSON.stringify(rankFiles, null, 2)), {
    kind: 'ranks',
    captureId: null,
    name: 'ranks.json',
  });
}

/** The workload's record is read even after Ctrl-C: it is small and describes the other captures. @throws E_INTERRUPTED */
function ensureNotInterrupted({ path, kind }: CaptureFile, signal: AbortSignal | undefined): void {
  if (signal?.aborted !== true || kind === 'record') return;
  throw new InferscopeError('E_INTERRUPTED', {
    what: `${basename(path)} was not read`,
    why: 'Ctrl-C or a signal stopped it first.',
    fix: 'Import it from the artifacts of the session.',
  });
}

function isRecord(outcome: ImportOutcome): outcome is RecordOutcome {
  return 'callsByPid' in outcome;
}

/** For arrays nested thousands deep, or a length or number that JavaScript rejects. */
const tooLargeValue = (path: string, error: RangeError): InferscopeError =>
  unreadableFile(null, 'Export it again from the profiler.')(
    path,
    `It has values nested too deeply or too large to read (${error.message}).`,
    error,
  );

/** @throws E_USAGE for a memory profile together with other captures */
function ensureAlone(known: readonly RecognizedFile[], captures: number): void {
  const capture = known.find(({ importer }) => importer.keepsFile);
  if (!capture || captures === 1) return;
  throw new InferscopeError('E_USAGE', {
    what: `${capture.file.path} cannot be imported together with other captures`,
    why: 'A memory profile needs its own session.',
    fix: `inferscope import ${capture.file.path}`,
  });
}

/** Wall clock of the capture that starts first; null if none records it. */
function earliestZero(files: readonly RecognizedFile[]): bigint | null {
  const zeros = files.flatMap(({ facts }) =>
    facts.realtime_zero_ns === null ? [] : [facts.realtime_zero_ns],
  );
  return zeros.length > 0 ? zeros.reduce((a, b) => (a < b ? a : b)) : null;
}

/** A valid wall clock is between 1970 and 2100. */
const year2100Ns = 4_102_444_800_000_000_000n;

/** Removes an invalid wall clock. @returns an issue if it was removed */
function clockIssues({ file, facts }: RecognizedFile): Issue[] {
  const zero = facts.realtime_zero_ns;
  if (zero === null || (zero >= 0n && zero < year2100Ns)) return [];
  facts.realtime_zero_ns = null;
  const text = `The wall clock of ${basename(file.path)} is not a valid date (realtime_zero_ns is ${zero}) and is ignored.`;
  return [{ code: 'clock_impossible', severity: 'warning', text }];
}

/** The given execution, or the one of the file's tool; telemetry logs belong to the execution of the timeline. */
function executionOf(
  { file, facts }: RecognizedFile,
  timeline: RecognizedFile,
  secrets: string[],
): Execution {
  const ownExecution =
    file.execution ?? (facts.purpose === 'telemetry' ? timeline.file.execution : undefined);
  const source = facts.purpose === 'telemetry' ? timeline.facts : facts;
  const purpose =
    source.purpose === 'telemetry' || source.purpose === 'results' ? 'imported' : source.purpose;
  return {
    execution_id: ownExecution?.execution_id ?? idOf(source.tool.name),
    purpose: ownExecution?.purpose ?? purpose,
    command: ownExecution?.command ?? redactCommand(source.command ?? [], secrets),
    exit_code: ownExecution?.exit_code ?? null,
    start_ns: null,
    end_ns: null,
  };
}

/** An unused capture id: the tool's name, after the id of a given execution; numbered if several files have it (nsys, nsys-2, …). */
function freeId({ facts, file }: RecognizedFile, usedIds: string[]): string {
  const stem = idOf(file.execution ? `${file.execution.execution_id}-${facts.tool.name}` : facts.tool.name);
  let id = stem;
  for (let n = 2; usedIds.includes(id); n++) id = `${stem}-${n}`;
  return id;
}

function idOf(name: string): string {
  return (
    name
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '-')
      .replaceAll(/^-+|-+$/g, '') || 'capture'
  );
}
