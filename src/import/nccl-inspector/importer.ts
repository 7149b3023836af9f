import { containsNo } from '../trace-file-error.js';
import { readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Issue } from '../../model/document.js';
import type { ImportTarget } from '../../model/workbench.js';
import type { CaptureFacts, ImportContext, Importer, ImportOutcome } from '../importer.js';
import { readLogLines } from './lines.js';
import { type InspectorRecord, type SkipReason, recordOf } from './record.js';
import type { IssueCode } from '../../model/issue-codes.js';

/** inspector.cc: "<hostname>-pid<pid>.log", one file per process. */
const logName = /-pid\d+\.log(?:\.gz)?$/;

/** A log of NCCL Inspector, or the folder of all ranks' logs (NCCL_INSPECTOR_DUMP_DIR). */
export const ncclInspectorImporter = {
  name: 'nccl-inspector',
  sniff: (firstBytes, fileName) =>
    /^\s*\{\s*"header"\s*:\s*\{[\s\S]*?"inspector_output_format_version"/.test(firstBytes) ||
    // For a folder: the names of its files.
    (!firstBytes.trimStart().startsWith('{') &&
      !logName.test(fileName) &&
      firstBytes.split('\n').some((name) => logName.test(name))),
  async facts(path): Promise<CaptureFacts> {
    const starts: number[] = [];
    for (const file of (await findLogs(path)).logs) {
      for await (const { text } of readLogLines(file)) {
        const record = text === null ? 'unreadable' : recordOf(text);
        if (typeof record === 'string') continue;
        const first = startUsOf(record);
        if (first !== null) starts.push(first);
        break;
      }
    }
    return {
      tool: { name: 'NCCL Inspector', version: null },
      realtime_zero_ns: starts.length === 0 ? null : BigInt(starts.reduce((a, b) => Math.min(a, b))) * 1000n,
      command: null,
      hardware: {},
      software: {},
      // Recorded while the program ran, with or without a profiler.
      purpose: 'telemetry',
    };
  },
  async load(
    path: string,
    { sink }: Pick<ImportTarget, 'sink'>,
    context: ImportContext,
  ): Promise<ImportOutcome> {
    const { logs, others: otherFiles } = await findLogs(path);
    const losses = { unreadable: 0, impossible: 0, cutOff: 0, untimed: 0, repeated: 0, rows: 0 };
    const sequences = new Map<string, Set<number>>();
    const versions = new Set<string>();
    const silent: string[] = [];
    const { execution_id, capture_id, host } = context;
    const zeroUs = context.zero.realtime_ns === null ? null : Number(context.zero.realtime_ns / 1000n);
    const sessionNs = (us: number | null) => (us === null || zeroUs === null ? null : (us - zeroUs) * 1000);
    for (const [index, file] of logs.entries()) {
      const before = losses.rows;
      for await (const { text, isComplete } of readLogLines(file, context.signal)) {
        if (text?.trim() === '') continue;
        const record: InspectorRecord | SkipReason = text === null ? 'unreadable' : recordOf(text);
        if (typeof record === 'string') {
          losses[record === 'unreadable' && !isComplete ? 'cutOff' : record]++;
          continue;
        }
        const { row, writtenUs, startUs, version } = record;
        versions.add(version);
        if (isRepeated(record, sequences)) {
          losses.repeated++;
          continue;
        }
        losses.rows++;
        if (row.dur_ns === null) losses.untimed++;
        const times = { written_ns: sessionNs(writtenUs), start_ns: sessionNs(startUs) };
        sink.append('collectives', { execution_id, capture_id, ...row, ...times, host: row.host ?? host });
      }
      if (losses.rows === before) silent.push(basename(file));
      context.progress?.((index + 1) / logs.length);
    }
    if (losses.rows === 0)
      throw noRecords(path, 'None of its lines has a communicator and the time of an operation.');
    return {
      // Each host has its own clock.
      clock: { name: 'CLOCK_REALTIME of each host, µs', resolution_ns: 1000, error_bound_ns: null },
      issues: issuesOf(losses, { versions, silent, others: otherFiles }),
    };
  },
} satisfies Importer;

/** Processes number the operations of a communicator: a repeated number is a duplicate line. */
function isRepeated({ row }: Pick<InspectorRecord, 'row'>, sequences: Map<string, Set<number>>): boolean {
  const number = row.sequence ?? null;
  if (number === null) return false;
  const series = JSON.stringify([row.host, row.pid, row.communicator, row.rank, row.operation, row.peer]);
  const numbers = sequences.get(series) ?? new Set();
  sequences.set(series, numbers);
  if (numbers.has(number)) return true;
  numbers.add(number);
  return false;
}

/** Start of the operation; if the line lacks it, the time of writing minus the duration, which is at or after the start. */
const startUsOf = ({ row, writtenUs, startUs }: InspectorRecord): number | null =>
  startUs ?? (writtenUs === null ? null : writtenUs - (row.dur_ns ?? 0) / 1000);

async function findLogs(path: string): Promise<{ logs: string[]; others: string[] }> {
  if (!(await stat(path)).isDirectory()) return { logs: [path], others: [] };
  const names = (await readdir(path)).sort();
  const logs = names.filter((name) => logName.test(name)).map((name) => join(path, name));
  return { logs, others: names.filter((name) => !logName.test(name)) };
}

function issuesOf(
  losses: { unreadable: number; impossible: number; cutOff: number; untimed: number; repeated: number },
  sources: { versions: ReadonlySet<string>; silent: readonly string[]; others: readonly string[] },
): Issue[] {
  const issue = (severity: Issue['severity'], code: IssueCode, count: number, text: string): Issue[] =>
    count === 0 ? [] : [{ code, severity, text, count }];
  const otherVersions = [...sources.versions].filter((version) => !version.startsWith('v4.'));
  const listNames = (names: readonly string[]) =>
    `${names.slice(0, 3).join(', ')}${names.length > 3 ? `, and ${names.length - 3} more` : ''}`;
  return [
    ...issue(
      'warning',
      'collectives_unreadable',
      losses.unreadable,
      'Lines that are not NCCL Inspector records were skipped.',
    ),
    ...issue(
      'warning',
      'collectives_impossible',
      losses.impossible,
      'Records with a missing field or an invalid value (negative, not a number, a rank outside the communicator) were dropped.',
    ),
    ...issue(
      'info',
      'collectives_cut_off',
      losses.cutOff,
      'The last record of a log is incomplete and was skipped.',
    ),
    ...issue(
      'info',
      'collectives_untimed',
      losses.untimed,
      'Operations without a time are counted, but excluded from times and bandwidths.',
    ),
    ...issue(
      'warning',
      'collectives_repeated',
      losses.repeated,
      'Duplicate records of an operation (a log joined or copied twice) were dropped.',
    ),
    ...issue(
      'warning',
      'collectives_version',
      otherVersions.length,
      `The logs are of format ${otherVersions.join(', ')}; inferscope supports v4.`,
    ),
    ...issue(
      'warning',
      'collectives_empty_log',
      sources.silent.length,
      `No records in: ${listNames(sources.silent)}. The ranks of these processes are missing.`,
    ),
    ...issue('info', 'files_left_out', sources.others.length, `Not read: ${listNames(sources.others)}.`),
  ];
}

const noRecords = containsNo(
  'NCCL Inspector record',
  'Record with: NCCL_PROFILER_PLUGIN=…/libnccl-profiler-inspector.so NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=500 <command>',
);
