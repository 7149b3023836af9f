import { mkdir, readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { identify } from '../import/identify.js';
import type { CaptureFacts, Importer } from '../import/importer.js';
import { unreadableFile } from '../import/trace-file-error.js';
import type { Execution } from '../model/manifest.js';
import { findParquetDamage } from '../session/parquet-damage.js';
import type { SessionFiles } from '../session/session-files.js';

/** A file (or nsys parquet folder) written by a profiler. */
export interface CaptureFile {
  path: string;
  /** Execution that wrote it; without it, each tool is one execution. */
  execution?: Pick<Execution, 'execution_id' | 'purpose' | 'command' | 'exit_code'>;
  /** Kind given by its writer; unreadable files are saved under this kind. */
  kind?: string;
}

export interface RecognizedFile {
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

/** Finds the importer of a file and reads its facts. @throws E_FORMAT_UNKNOWN, E_TRACE_FILE, E_TOOL_MISSING … */
export async function recognizeFile(file: CaptureFile, session: SessionFiles): Promise<RecognizedFile> {
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
): Promise<Pick<RecognizedFile, 'readable' | 'pages'>> {
  if (importer.name === 'nsys-rep') {
    const { exportNsysReport } = await import('../capture/tools/nsys.js');
    const readable = await exportNsysReport(path, await exportFolder(path, scratch));
    await ensurePages(readable);
    return { readable, pages: [] };
  }
  if (importer.name === 'ncu-rep') {
    const { exportNcuReport } = await import('../capture/tools/ncu.js');
    const { raw, details } = await exportNcuReport(path, await exportFolder(path, scratch));
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
  const damage = await findParquetDamage(names.map((name) => join(readable, name)));
  if (damage === null) return;
  throw damagedExport(basename(readable), damage);
}

async function exportFolder(path: string, scratch: string): Promise<string> {
  const folder = join(scratch, `export-${basename(path)}`);
  await mkdir(folder, { recursive: true });
  return folder;
}
