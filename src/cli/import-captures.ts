import { mkdir, readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { identify } from '../import/identify.js';
import type { CaptureFacts, Fact, ImportContext, Importer, ImportOutcome } from '../import/importer.js';
import type { RecordOutcome, RequestSizes } from '../import/record.js';
import { ensureSameTime } from '../import/same-time.js';
import { unreadableFile } from '../import/trace-file-error.js';
import type { Issue } from '../model/document.js';
import { InferscopeError } from '../model/errors.js';
import type { Capture, Execution } from '../model/manifest.js';
import type { ModelLine } from '../model/record.js';
import { missingRanks, type RankFiles } from '../model/ranks.js';
import { redactCommand, redactJson, redactText, secretsOfCommand } from '../model/redaction.js';
import { withText } from '../model/sentence-template.js';
import { saveCalls, type PartCalls } from '../record/ranks/calls.js';
import { findParquetDamage } from '../session/parquet-damage.js';
import type { SessionFiles } from '../session/session-files.js';
import { redactedRecord, redactingSink, type Redact } from './redacting.js';
import type { StageNameRule } from '../import/stage-name-rules.js';

/** A file (or nsys parquet folder) written by a profiler. */
export interface CaptureFile {
  path: string;
  /** Execution that wrote it; without it, each tool is one execution. */
  execution?: Pick<Execution, 'execution_id' | 'purpose' | 'command' | 'exit_code'>;
  /** Kind given by its writer; unreadable files are saved under this kind. */
  kind?: string;
}

export interface ImportOptions {
  /** Session time 0 if known to the caller; else the start of the earliest capture. */
  zero?: ImportContext['zero'];
  stageNames?: readonly StageNameRule[];
  /** Values to redact everywhere, e.g. tokens in the program's environment. */
  redact?: (text: string) => string;
  /** Save the raw files in addition to the tables. */
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

interface IdentifiedFile {
  file: CaptureFile;
  /** The path that the importer reads: the file itself, or its export by its own tool. */
  readable: string;
  importer: Importer;
  /** Kind of the file itself. */
  format: string;
  facts: CaptureFacts;
  /** Secrets from the program's environment in the file; never saved. */
  secrets: string[];
  /** Further pages printed by the file's own tool and saved with it, such as ncu's details with NVIDIA's rules. */
  pages: string[];
}

const host = 'localhost';

/**
 * Imports files of any known format into one session: captures of one or several runs of the same workload. Raw files
 * are saved as artifacts.
 * @throws E_FORMAT_UNKNOWN, E_TRACE_FILE, E_TOOL_MISSING … unless `tolerant`
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
  const guarded = async <T>(path: string, work: () => Promise<T>): Promise<T | null> => {
    try {
      return await work();
    } catch (error) {
      addFailure(imported, path, error, options.tolerant === true);
      return null;
    }
  };

  const known: IdentifiedFile[] = [];
  for (const file of files) {
    const found = await guarded(file.path, () => {
      ensureNotInterrupted(file, options.signal);
      return recognize(file, session);
    });
    if (found) known.push(found);
    else if (options.keepRaw && file.kind !== 'record') await saveUnread(session, file);
  }
  ensureAlone(known, files.length + (options.usedCaptureIds?.length ?? 0));
  for (const capture of known) imported.issues.push(...clockIssues(capture));
  const zeros = known.flatMap(({ facts }) =>
    facts.realtime_zero_ns === null ? [] : [facts.realtime_zero_ns],
  );
  imported.zeroRealtimeNs ??= zeros.length > 0 ? zeros.reduce((a, b) => (a < b ? a : b)) : null;
  const zero = options.zero ?? { realtime_ns: imported.zeroRealtimeNs, monotonic_ns: null };
  for (const { file, facts } of known)
    // Benchmark figures are compared over long periods.
    if (facts.purpose !== 'results') ensureSameTime(file.path, facts.realtime_zero_ns, zero.realtime_ns);

  const secrets = known.flatMap(({ secrets, facts }) => [
    ...secrets,
    ...secretsOfCommand(facts.command ?? []),
  ]);
  const redact = (text: string) => redactText(options.redact?.(text) ?? text, secrets);
  const target = { ...session, sink: redactingSink(session.sink, redact) };
  const timeline = known.find(({ facts }) => facts.purpose === 'profiled');
  // A partially read capture keeps its id.
  const usedIds = [...(options.usedCaptureIds ?? [])];
  for (const capture of known) {
    const execution = executionOf(capture, timeline ?? capture, secrets);
    const captureId = freeId(capture, usedIds);
    usedIds.push(captureId);
    const context: ImportContext = {
      execution_id: execution.execution_id,
      capture_id: captureId,
      host,
      zero,
      ...(options.stageNames ? { stageNames: options.stageNames } : {}),
      ...(options.part ? { collectives: true } : {}),
      redact,
      ...(options.signal ? { signal: options.signal } : {}),
      progress: (share) => options.onProgress?.(basename(capture.file.path), share),
    };
    const outcome = await guarded(capture.file.path, async (): Promise<ImportOutcome> => {
      ensureNotInterrupted(capture.file, options.signal);
      const loaded = await capture.importer.load(capture.readable, target, context);
      if (!isRecord(loaded)) return loaded;
      const record: RecordOutcome = { ...loaded, model: redactJson(loaded.model, redact) };
      return record;
    });
    if (options.keepRaw || capture.importer.keepsFile) await keepRaw(session, capture, captureId, redact);
    if (!outcome) {
      session.forget(captureId);
      continue;
    }
    if (!imported.executions.some((e) => e.execution_id === execution.execution_id))
      imported.executions.push(execution);
    imported.captures.push({
      capture_id: captureId,
      execution_id: execution.execution_id,
      tool: capture.facts.tool,
      importer: capture.importer.name,
      clock: outcome.clock,
    });
    imported.issues.push(...outcome.issues.map((issue) => withText(issue, redact(issue.text))));
    Object.assign(imported.hardware, capture.facts.hardware);
    Object.assign(imported.software, capture.facts.software);
    imported.rank ??= capture.facts.rank ?? null;
    imported.worldSize ??= capture.facts.world_size ?? null;
    if (isRecord(outcome)) {
      imported.model ??= outcome.model;
      imported.sizes ??= outcome.sizes;
    }
  }
  // Captures added to an existing session are not compared with its earlier ones. A library that recorded its own calls has better data.
  if (options.usedCaptureIds === undefined && session.rows('collectives') === 0)
    await saveRanks(session, imported, options);
  return imported;
}

/** Adds a file that could not be read to failures and issues. @throws the error unless `tolerant` */
function addFailure(imported: ImportedCaptures, path: string, thrown: unknown, tolerant: boolean): void {
  const error = thrown instanceof RangeError ? tooMuch(path, thrown) : thrown;
  if (!tolerant || !(error instanceof InferscopeError) || error.code === 'E_DISK_FULL') throw error;
  imported.failures.push({ path, error });
  if (error.code === 'E_INTERRUPTED') {
    const text = `${basename(path)} was not read because of Ctrl-C; it is saved with the artifacts, and inferscope import can read it.`;
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
  const found = await saveCalls(session.workbench, imported.captures, { isPart: part });
  if (part) imported.calls = found?.calls ?? { known_by: 'name', calls: 0, processes: 1 };
  if (part || found === null) return;
  const { ranks } = found;
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

/** For arrays nested thousands deep, or a length or number that JavaScript rejects. */
const tooMuch = (path: string, error: RangeError): InferscopeError =>
  unreadableFile(null, 'Export it again from the profiler.')(
    path,
    `It has values nested too deeply or too large to read (${error.message}).`,
    error,
  );

/** @throws E_USAGE for a memory profile together with other captures */
function ensureAlone(known: readonly IdentifiedFile[], captures: number): void {
  const capture = known.find(({ importer }) => importer.keepsFile);
  if (!capture || captures === 1) return;
  throw new InferscopeError('E_USAGE', {
    what: `${capture.file.path} cannot be imported together with other captures`,
    why: 'A memory profile needs its own session.',
    fix: `inferscope import ${capture.file.path}`,
  });
}

/** Valid wall clock, ns since the epoch: 1970 to 2100. */
const latestClockNs = 4_102_444_800_000_000_000n;

/** Removes a clock outside this range. @returns an issue if it was removed */
function clockIssues({ file, facts }: IdentifiedFile): Issue[] {
  const zero = facts.realtime_zero_ns;
  if (zero === null || (zero >= 0n && zero < latestClockNs)) return [];
  facts.realtime_zero_ns = null;
  const text = `The wall clock of ${basename(file.path)} is not a valid date (realtime_zero_ns is ${zero}) and is ignored.`;
  return [{ code: 'clock_impossible', severity: 'warning', text }];
}

/** The workload's record is read even after Ctrl-C: it is small and describes the other captures. @throws E_INTERRUPTED */
function ensureNotInterrupted({ path, kind }: CaptureFile, signal: AbortSignal | undefined): void {
  if (signal?.aborted !== true || kind === 'record') return;
  throw new InferscopeError('E_INTERRUPTED', {
    what: `${basename(path)} was not read`,
    why: 'Ctrl-C was pressed first.',
    fix: 'Import it from the artifacts of the session.',
  });
}

/** Saves an unreadable file: its own tool may be able to read it later or report its error. */
async function saveUnread(session: SessionFiles, { path, kind, execution }: CaptureFile): Promise<void> {
  const captureId = execution?.execution_id ?? null;
  await session.addArtifact(path, { kind: kind ?? 'unread', captureId, name: basename(path) });
}

function isRecord(outcome: ImportOutcome): outcome is RecordOutcome {
  return 'callsByPid' in outcome;
}

async function recognize(file: CaptureFile, session: SessionFiles): Promise<IdentifiedFile> {
  const importer = await identify(file.path);
  const { readable, pages } = await convertCapture(file.path, importer, session.scratch);
  const reader = readable === file.path ? importer : await identify(readable);
  return {
    file,
    readable,
    importer: reader,
    format: importer.name,
    facts: await reader.facts(readable, session.workbench),
    secrets: (await reader.secrets?.(readable, session.workbench)) ?? [],
    pages,
  };
}

/** Binary reports are exported with the tool that wrote them. */
async function convertCapture(
  path: string,
  importer: Importer,
  scratch: string,
): Promise<Pick<IdentifiedFile, 'readable' | 'pages'>> {
  if (importer.name === 'nsys-rep') {
    const { exportNsysReport } = await import('../capture/tools/nsys.js');
    const readable = await exportNsysReport(path, await folderFor(path, scratch));
    await ensurePages(readable);
    return { readable, pages: [] };
  }
  if (importer.name === 'ncu-rep') {
    const { exportNcuReport } = await import('../capture/tools/ncu.js');
    const { raw, details } = await exportNcuReport(path, await folderFor(path, scratch));
    return { readable: raw, pages: details === null ? [] : [details] };
  }
  return { readable: path, pages: [] };
}

const damagedExport = unreadableFile(
  'nsys export',
  'Check the free disk space and the memory of this machine, then import the report again.',
);

/** @throws E_TRACE_FILE when a folder of Parquet files has an unreadable page */
async function ensurePages(readable: string): Promise<void> {
  if (!(await stat(readable)).isDirectory()) return;
  const names = (await readdir(readable)).filter((name) => name.endsWith('.parquet'));
  const wrong = await findParquetDamage(names.map((name) => join(readable, name)));
  if (wrong === null) return;
  throw damagedExport(basename(readable), wrong);
}

async function folderFor(path: string, scratch: string): Promise<string> {
  const folder = join(scratch, `export-${basename(path)}`);
  await mkdir(folder, { recursive: true });
  return folder;
}

/** Telemetry logs belong to the execution of the timeline; the file of any other tool is an execution of its own. */
function executionOf(
  { file, facts }: IdentifiedFile,
  timeline: IdentifiedFile,
  secrets: string[],
): Execution {
  const ownExecution =
    file.execution ?? (facts.purpose === 'telemetry' ? timeline.file.execution : undefined);
  const from = facts.purpose === 'telemetry' ? timeline.facts : facts;
  const purpose = from.purpose === 'telemetry' || from.purpose === 'results' ? 'imported' : from.purpose;
  return {
    execution_id: ownExecution?.execution_id ?? idOf(from.tool.name),
    purpose: ownExecution?.purpose ?? purpose,
    command: ownExecution?.command ?? redactCommand(from.command ?? [], secrets),
    exit_code: ownExecution?.exit_code ?? null,
    start_ns: null,
    end_ns: null,
  };
}

/** An unused capture id: the tool's name, numbered if it has several files (nsys, nsys-2, …). */
function freeId({ facts, file }: IdentifiedFile, usedIds: string[]): string {
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

/**
 * Profilers' raw files are saved unchanged and may contain the program's secrets; `session export` leaves them out.
 * The workload's record is exported, so it is saved without secrets.
 */
async function keepRaw(
  session: SessionFiles,
  { file, format, pages }: IdentifiedFile,
  captureId: string,
  redact: Redact,
): Promise<void> {
  const place = { kind: format, captureId, name: basename(file.path) };
  if (format === 'inferscope-record') {
    await session.addArtifact(await redactedRecord(file.path, session.scratch, redact), place);
    return;
  }
  for (const page of pages) await session.addArtifact(page, { kind: 'ncu-csv', captureId });
  if (!(await stat(file.path)).isDirectory()) {
    await session.addArtifact(file.path, place);
    return;
  }
  const { create } = await import('tar');
  const archive = join(session.scratch, `${captureId}.tar`);
  await create({ file: archive, cwd: join(file.path, '..'), portable: true }, [basename(file.path)]);
  await session.addArtifact(archive, { ...place, name: `${basename(file.path)}.tar` });
}
