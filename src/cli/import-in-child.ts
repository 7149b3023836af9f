import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, statSync } from 'node:fs';
import { basename, dirname, extname, join } from 'node:path';
import process from 'node:process';
import { aiperfFiles } from '../import/benchmark-results/aiperf-folder.js';
import { unreadableFile } from '../import/trace-file-error.js';
import { startProcess } from '../model/process-start.js';
import { homeFolders } from '../session/home.js';
import { crashes } from '../session/parquet-damage.js';
import { removeStaleFolders } from '../session/temporary-folder.js';
import { exitAtOnce, withStopHandler } from './interrupt.js';

const readerCrashed = unreadableFile(
  null,
  'Export it again from the report: nsys export --type parquetdir --force-overwrite true REPORT.nsys-rep',
);

/** Environment variable of the child process that reads the files. */
const childVariable = 'INFERSCOPE_IMPORT_CHILD';

/**
 * Replaces the files of `export/*.parquet`, as a shell expands it, with their nsys folder, and an artifact folder of
 * AIPerf with its files.
 */
export function expandCapturePaths(paths: readonly string[]): string[] {
  const expanded = paths.flatMap((path) => {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats?.isDirectory()) {
      const files = aiperfFiles(path);
      return files.length > 0 ? files : [path];
    }
    const folder = dirname(path);
    const part = extname(path) === '.parquet' && existsSync(join(folder, 'StringIds.parquet'));
    return part && stats?.isFile() ? [folder] : [path];
  });
  return [...new Set(expanded)];
}

/**
 * DuckDB reads Parquet pages without checksums, and a damaged page may crash the process. Folders of Parquet files are
 * therefore read by a child process that runs the same command.
 * @returns whether a child process did the import; `process.exitCode` is then that of the child
 * @throws E_TRACE_FILE if it crashed, E_PROCESS_START
 */
export async function importInChild(paths: readonly string[]): Promise<boolean> {
  const folders = paths.filter((path) => statSync(path, { throwIfNoEntry: false })?.isDirectory());
  if (folders.length === 0 || process.env[childVariable] !== undefined) return false;
  const argv = [...process.execArgv, ...process.argv.slice(1)];
  // In its own process group: Ctrl-C reaches this process, which forwards it once.
  const child = await startProcess('reads the folder', process.argv[1]!, (mark) =>
    spawn(process.execPath, argv, {
      stdio: 'inherit',
      detached: true,
      env: { ...process.env, [childVariable]: '1', ...mark },
    }),
  );
  const [code, signal] = (await withStopHandler(
    (name) => child.kill(name),
    () => once(child, 'exit'),
  )) as [number | null, NodeJS.Signals | null];
  if (signal === null) {
    process.exitCode = code ?? 0;
    return true;
  }
  removeStaleFolders(homeFolders());
  if (!crashes.has(signal)) exitAtOnce(signal);
  throw readerCrashed(
    folders.map((path) => basename(path)).join(', '),
    `The reading process was killed by ${signal}: a Parquet file is damaged. Nothing was saved.`,
  );
}
