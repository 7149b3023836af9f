import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, rmSync } from 'node:fs';
import { availableParallelism, freemem } from 'node:os';
import { basename, join, resolve } from 'node:path';
import process from 'node:process';
import { identify } from '../../import/identify.js';
import { InferscopeError } from '../../model/errors.js';
import { childEntry } from '../../model/installation.js';
import { inLanes } from '../../model/lanes.js';
import { recordVariable } from '../../model/outer-run.js';
import { startProcess } from '../../model/process-start.js';
import type { RankFiles } from '../../model/ranks.js';
import { shellCommand } from '../../model/shell.js';
import { rankFiles, rankOfName } from '../../record/ranks/files.js';
import { rankIssues } from '../../record/ranks/issues.js';
import { planTasks, type RankTask, readJournal, writeJournal } from '../../record/ranks/journal.js';
import { joinParts, type RankedPart } from '../../record/ranks/join-parts.js';
import { readPart } from '../../record/ranks/part.js';
import type { Recording } from '../../record/record-session.js';
import { ensureWritable } from '../../session/home.js';
import { plural } from '../../vocabulary/format.js';
import type { ImportedCaptures } from '../import-captures.js';
import type { PartOrder } from './import-part.js';
import { saveNewSession, type RanksOptions, readWorkloadOptions } from '../import-run.js';
import { startProgress } from '../progress.js';
import { importOnSlurm } from './ranks-on-slurm.js';
import { exitText } from '../../vocabulary/process-exit.js';

/** Imports one file into its folder. */
type ImportPart = (order: PartOrder, signal: AbortSignal) => Promise<void>;

/** Formats with the timeline of one rank, or of the ranks of one host. */
const timelines: ReadonlySet<string> = new Set(['kineto', 'nsys-sqlite', 'nsys-parquetdir', 'nsys-rep']);

/** Maximum memory to import a file: database, parser and heap. */
const taskBytes = 1.5 * 2 ** 30;

/**
 * Imports many files, one per rank, into one session on one clock. Each file is imported by its own process; finished ones are kept if the
 * command is interrupted, and a file that cannot be read is reported without stopping the rest.
 * @throws E_USAGE without files, E_TRACE_FILE when none can be read, E_INTERRUPTED
 */
export async function importRanks(
  patterns: readonly string[],
  options: RanksOptions,
  signal: AbortSignal,
  importPart: ImportPart = importInProcess,
): Promise<string> {
  const files = rankFiles(patterns);
  if (files.length === 0)
    throw new InferscopeError('E_USAGE', {
      what: `no timeline matches ${patterns.join(' ')}`,
      why: 'Timelines are .json, .json.gz, .nsys-rep and .sqlite files and folders of nsys export --type parquetdir.',
      fix: "Name the folder that holds one file per rank: inferscope import 'traces/**' --ranks",
    });
  const workload = await readWorkloadOptions(options);
  const work = join(ensureWritable().cache, 'ranks', folderKey(patterns));
  if (!options.resume) rmSync(work, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });
  const journal = join(work, 'journal.json');
  const tasks = planTasks(files, options.resume ? readJournal(journal) : []);
  const progress = startProgress(options.quiet === true);
  try {
    for (const task of tasks)
      if (task.outcome === 'pending') await settleWithoutImport(task, join(work, task.folder));
    writeJournal(journal, tasks);
    if (options.on === 'slurm') {
      const id = await importOnSlurm(tasks, { work, patterns, options, signal, progress });
      if (id !== null) {
        progress.done('session saved', id);
        return id;
      }
      for (const task of tasks) takeStoredResult(task, join(work, task.folder));
      throw interruptedError(tasks, patterns);
    }
    await importAll(tasks, { work, journal, options, signal, importPart, progress });
    if (signal.aborted) throw interruptedError(tasks, patterns);
    const done = tasks.filter(({ outcome }) => outcome === 'imported');
    if (done.length === 0) throw nothingRead(tasks);
    progress.update('merging', plural(done.length, 'file'));
    const { id } = await saveNewSession(
      { label: `${done.length}-ranks`, title: plural(done.length, 'rank') },
      options,
      workload,
      (recording) => mergeParts(recording, tasks, work),
    );
    progress.done('session saved', id);
    // Failed files may be repaired and resumed.
    if (!tasks.some(({ outcome }) => outcome === 'failed')) rmSync(work, { recursive: true, force: true });
    return id;
  } finally {
    progress.end();
  }
}

/** The same arguments give the same folder, so that the import can be resumed. */
const folderKey = (patterns: readonly string[]): string =>
  createHash('sha256')
    .update(JSON.stringify(patterns.map((pattern) => resolve(pattern))))
    .digest('hex')
    .slice(0, 16);

interface Work {
  work: string;
  journal: string;
  options: RanksOptions;
  signal: AbortSignal;
  importPart: ImportPart;
  progress: ReturnType<typeof startProgress>;
}

/** Runs the remaining tasks, several at a time. */
async function importAll(
  tasks: readonly RankTask[],
  { work, journal, options, signal, importPart, progress }: Work,
) {
  const pending = tasks.filter(({ outcome }) => outcome === 'pending');
  const slots =
    options.jobs ?? Math.max(1, Math.min(availableParallelism(), Math.floor(freemem() / taskBytes)));
  let finishedFiles = tasks.length - pending.length;
  await inLanes(pending, slots, async (task) => {
    if (signal.aborted) return;
    await importOne(task, {
      folder: join(work, task.folder),
      keepRaw: options.raw,
      signal,
      importPart,
    });
    if (task.outcome !== 'pending') finishedFiles++;
    writeJournal(journal, tasks);
    progress.update('importing ranks', `${finishedFiles} of ${tasks.length} files`);
  });
}

const setOutcome = (task: RankTask, outcome: RankTask['outcome'], reason: string | null = null) =>
  Object.assign(task, { outcome, reason });

/** Uses an existing result, and rejects files without a timeline, without importing them. */
async function settleWithoutImport(task: RankTask, folder: string): Promise<void> {
  if (takeStoredResult(task, folder)) return;
  try {
    const { name } = await identify(task.file);
    if (!timelines.has(name)) setOutcome(task, 'skipped', `It is not a timeline but ${name}.`);
  } catch (error) {
    if (!(error instanceof InferscopeError)) throw error;
    const isOtherFile = error.code === 'E_FORMAT_UNKNOWN' && rankOfName(task.file) === null;
    setOutcome(task, isOtherFile ? 'skipped' : 'failed', error.parts.why);
  }
}

/** @returns whether the import of the file has a result */
function takeStoredResult(task: RankTask, folder: string): boolean {
  const part = task.outcome === 'pending' ? readPart(folder) : null;
  if (part === null) return false;
  if ('failed' in part) setOutcome(task, 'failed', part.failed.why);
  else setOutcome(task, 'imported');
  return true;
}

async function importOne(
  task: RankTask,
  {
    folder,
    keepRaw,
    signal,
    importPart,
  }: { folder: string; keepRaw: boolean; signal: AbortSignal; importPart: ImportPart },
): Promise<void> {
  let thrown: unknown = null;
  await importPart({ file: task.file, folder, keepRaw }, signal).catch((error: unknown) => (thrown = error));
  if (signal.aborted || takeStoredResult(task, folder)) return;
  if (thrown !== null && !(thrown instanceof InferscopeError)) throw thrown;
  setOutcome(
    task,
    'failed',
    thrown instanceof InferscopeError ? thrown.parts.why : 'Its process ended without a result.',
  );
}

/** @throws E_TRACE_FILE when the process crashed or was killed */
async function importInProcess(order: PartOrder, signal: AbortSignal): Promise<void> {
  const entry = childEntry('rank-child');
  const { [recordVariable]: _, ...env } = process.env;
  const child = await startProcess('imports a rank', entry, (mark) =>
    spawn(process.execPath, [entry, JSON.stringify(order)], {
      env: { ...env, ...mark },
      stdio: ['ignore', 'ignore', 'inherit'],
      detached: true,
    }),
  );
  const stop = () => child.kill('SIGTERM');
  signal.addEventListener('abort', stop);
  const [code, name] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  signal.removeEventListener('abort', stop);
  if (code === 0 || signal.aborted) return;
  throw new InferscopeError('E_TRACE_FILE', {
    what: `cannot read ${order.file}`,
    why: `Its import ${exitText(name, code)}.`,
    fix: `inferscope import ${order.file}`,
  });
}

/** Ranks from the traces, else from the files' names, else in the files' order. A second file of the same rank fails. */
function rankedParts(tasks: readonly RankTask[], work: string): (RankedPart & { task: RankTask })[] {
  const parts = tasks.flatMap((task) => {
    const folder = join(work, task.folder);
    const part = task.outcome === 'imported' ? readPart(folder) : null;
    if (part === null || 'failed' in part) return [];
    const source: RankedPart['source'] = part.rank === null ? 'file name' : 'trace';
    return [{ task, folder, part, rank: part.rank ?? rankOfName(task.file), source }];
  });
  if (parts.every(({ rank }) => rank === null))
    parts.forEach((part, index) => Object.assign(part, { rank: index, source: 'order of files' }));
  const fileByRank = new Map<number, string>();
  return parts
    .flatMap(({ rank, ...fields }) => {
      const fail = (reason: string) => {
        Object.assign(fields.task, { outcome: 'failed', reason });
        return [];
      };
      if (rank === null) return fail('Neither the trace nor its name states its rank.');
      const otherFile = fileByRank.get(rank);
      if (otherFile !== undefined) return fail(`Rank ${rank} was imported from ${basename(otherFile)}.`);
      fileByRank.set(rank, fields.task.file);
      return [{ ...fields, rank }];
    })
    .toSorted((a, b) => a.rank - b.rank);
}

async function mergeParts(
  recording: Recording,
  tasks: readonly RankTask[],
  work: string,
): Promise<ImportedCaptures> {
  const ranked = rankedParts(tasks, work);
  const executionId = 'ranks';
  const { parts, captures, clocks, worldSize, missing, zeroNs } = await joinParts(recording, ranked, {
    executionId,
  });
  const savedRanks: RankFiles = {
    world_size: worldSize,
    files: tasks.map(({ file, outcome, reason }) => {
      const part = ranked.find(({ task }) => task.file === file);
      const rankInfo = part ?? { rank: rankOfName(file), source: 'file name' as const };
      return {
        file: basename(file),
        outcome: outcome === 'pending' ? 'failed' : outcome,
        rank: rankInfo.rank,
        rank_source: rankInfo.rank === null ? null : rankInfo.source,
        reason,
      };
    }),
    clocks,
    missing,
  };
  await recording.saveJson('ranks', savedRanks);
  const [first] = parts;
  const [execution] = first?.session.manifest.executions ?? [];
  return {
    zeroRealtimeNs: zeroNs,
    executions: [
      {
        execution_id: executionId,
        purpose: 'profiled',
        command: execution?.command ?? [],
        exit_code: null,
        start_ns: null,
        end_ns: null,
      },
    ],
    captures,
    issues: rankIssues(savedRanks, parts),
    hardware: recordedFacts(first?.session.manifest.hardware ?? {}),
    software: ranked[0]?.part.software ?? {},
    model: null,
    sizes: null,
    rank: null,
    worldSize,
    calls: null,
    failures: [],
  };
}

/** Facts that a part's capture recorded; the others describe the machine that imported it. */
const recordedFacts = (facts: ImportedCaptures['hardware']): ImportedCaptures['hardware'] =>
  Object.fromEntries(
    Object.entries(facts).filter(([name]) => name.startsWith('gpu') || name === 'network_adapters'),
  );

function interruptedError(tasks: readonly RankTask[], patterns: readonly string[]): InferscopeError {
  const done = tasks.filter(({ outcome }) => outcome === 'imported').length;
  return new InferscopeError('E_INTERRUPTED', {
    what: `stopped after ${done} of ${tasks.length} files`,
    why: 'Ctrl-C or a signal stopped it. What is imported is kept.',
    fix: shellCommand(['inferscope', 'import', ...patterns, '--ranks', '--resume']),
  });
}

function nothingRead(tasks: readonly RankTask[]): InferscopeError {
  const [first] = tasks;
  return new InferscopeError('E_TRACE_FILE', {
    what: `none of ${tasks.length} files could be imported`,
    why: `${basename(first!.file)}: ${first!.reason ?? 'no reason is known.'}`,
    fix: `inferscope import ${first!.file}`,
  });
}
