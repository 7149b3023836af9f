import { existsSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { InferscopeError } from '../../model/errors.js';
import { failureLine, runTool, type ToolRun } from '../doctor/run-tool.js';
import type { ToolFacts } from '../doctor/facts.js';
import { findNsys } from './nsight.js';
import { readReportVersion } from './report-version.js';

/** An export of gigabytes takes minutes; a hanging one is killed. */
const exportMs = 30 * 60_000;
const versionMs = 10_000;

/** Whether this version of `nsys profile` has an option, according to its help. */
export async function nsysHasOption(path: string, option: string): Promise<boolean> {
  const { stdout, stderr } = await runTool(path, ['profile', '--help'], { timeoutMs: versionMs });
  return `${stdout}\n${stderr}`.includes(option);
}

/**
 * @param without what to do without nsys
 * @throws E_TOOL_MISSING
 */
export async function requireNsys(
  purpose: string,
  without = '--evaluator torch for PyTorch, none for times only.',
): Promise<ToolFacts> {
  const nsys = await findNsys(versionMs);
  if (nsys) return nsys;
  throw new InferscopeError('E_TOOL_MISSING', {
    what: `nsys, which is needed to ${purpose}, was not found`,
    why: 'It is neither on PATH nor in the usual folders (/opt/nvidia/nsight-systems, /usr/local/cuda).',
    fix: `Install NVIDIA Nsight Systems and type: inferscope doctor\nWithout it: ${without}`,
  });
}

/** NCCL's ranges have sizes and communicators in payloads, which are exported only as JSON; an old nsys has neither. */
const exportFormats = [
  ['parquetdir', '--include-json=true'],
  ['sqlite', '--include-json=true'],
  ['sqlite'],
] as const;

/**
 * Exports a report to an importable format: a folder of Parquet files, or SQLite if this nsys lacks that export.
 * @param folder an existing folder to write into
 * @returns the path of `<report>.parquetdir` or `<report>.sqlite`
 * @throws E_TOOL_MISSING, E_TOOL_VERSION, E_TOOL_FAILED
 */
export async function exportNsysReport(report: string, folder: string): Promise<string> {
  const nsys = await requireNsys(
    `read ${basename(report)}`,
    `nsys export --type sqlite --include-json=true ${basename(report)} where it was recorded, then import the .sqlite file.`,
  );
  const stem = join(folder, basename(report).replace(/\.(nsys-rep|qdrep)$/, ''));
  let run: ToolRun | null = null;
  for (const [type, ...extraArguments] of exportFormats) {
    const output = `${stem}.${type}`;
    const args = [
      'export',
      '--type',
      type,
      ...extraArguments,
      '--output',
      output,
      '--force-overwrite=true',
      report,
    ];
    run = await runTool(nsys.path, args, { timeoutMs: exportMs });
    if (run.ok && isWritten(output)) return output;
    // Only an unknown type or option is a reason to try the other format; a truncated report fails in both.
    if (
      !/parquetdir|include-json|invalid|unrecognized|unknown|possible values/i.test(
        `${run.stdout}${run.stderr}`,
      )
    )
      break;
  }
  throw exportFailure(report, nsys, run!);
}

function isWritten(path: string): boolean {
  return existsSync(path) && (!path.endsWith('.parquetdir') || readdirSync(path).length > 0);
}

/** Explains a failed `nsys export` or `nsys profile` import step. */
export function exportFailure(
  report: string,
  nsys: Pick<ToolFacts, 'version' | 'path'>,
  run: Pick<ToolRun, 'stdout' | 'stderr' | 'exitCode' | 'timedOut' | 'signal' | 'ok' | 'notFound'>,
): InferscopeError {
  const writerVersion = readReportVersion(report);
  const name = basename(report);
  if (writerVersion && nsys.version && isNewer(writerVersion, nsys.version)) {
    return new InferscopeError('E_TOOL_VERSION', {
      what: `nsys ${nsys.version} cannot read ${name}`,
      why: `The report was written by nsys ${writerVersion}; an older nsys cannot read it.`,
      fix: `Install Nsight Systems ${writerVersion} or newer, or export it on that machine: nsys export --type sqlite ${name}`,
    });
  }
  if (importerMissing(`${run.stdout}\n${run.stderr}`)) return importerFailure(nsys);
  const output = [run.stdout, run.stderr].join('\n').trim() === '' ? '' : errorLine(run);
  return new InferscopeError('E_TOOL_FAILED', {
    what: `nsys could not export ${name}`,
    why: `nsys ${nsys.version ?? ''} reported: ${output || failureLine({ ...run })}`.replace('  ', ' '),
    fix: `Run it by hand: nsys export --type sqlite ${name}\nA truncated report cannot be repaired; record it again.`,
  });
}

function errorLine(run: Pick<ToolRun, 'stdout' | 'stderr'>): string {
  const lines = `${run.stdout}\n${run.stderr}`
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);
  return lines.find((line) => /error|fail|exception|unable/i.test(line)) ?? lines.at(-1) ?? '';
}

/** Seen with nsys 2025.3.1 on a machine without libdw: profiling works, but writes no report. */
export function importerMissing(text: string): boolean {
  return /Unable to retrieve the importer version|skipping importation of the QDSTRM file/.test(text);
}

export function importerFailure(nsys: Pick<ToolFacts, 'version' | 'path'>): InferscopeError {
  return new InferscopeError('E_TOOL_FAILED', {
    what: 'nsys recorded the program but could not create a report',
    why:
      `Its importer did not start ("Unable to retrieve the importer version"): a library it needs is missing, ` +
      `usually libdw. (${nsys.path})`,
    fix: 'Type: sudo apt-get install libdw1 libelf1 (or elfutils-libs), then run it again.',
  });
}

/** 2025.6.1 is newer than 2025.5.2.121. Fields that only one of them has are ignored. */
export function isNewer(a: string, b: string): boolean {
  const [left, right] = [a, b].map((version) => version.split('.').map(Number)) as [number[], number[]];
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    if (left[i] !== right[i]) return left[i]! > right[i]!;
  }
  return false;
}
