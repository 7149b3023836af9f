import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { TableName } from '../model/tables.js';
import { quote } from './database.js';
import type { Digest } from './digest.js';
import { capturePath, checkCaptureId, type StagedFile } from './staged-file.js';

type NewFile = Pick<StagedFile, 'table' | 'capture_id' | 'path'>;

/** The Parquet files that a workbench writes below a folder. */
interface StagedFiles {
  written: StagedFile[];
  /** A new file of a table and capture, relative to the folder, which is created. */
  claim(table: TableName, captureId: string): Promise<NewFile>;
  /** Adds a file once it is complete; `finish` reports a failure. */
  addWhen(complete: Promise<{ rows: number; digest: Digest }>, file: NewFile): void;
  /** Waits for all files of addWhen. */
  finish(): Promise<void>;
  /** SQL of the rows saved for these captures; null without rows. */
  rowsOf(table: TableName, captureIds: readonly string[]): string | null;
}

export function stagedFiles(folder: string): StagedFiles {
  const written: StagedFile[] = [];
  const pending: Promise<void>[] = [];
  return {
    written,
    async claim(table, captureId) {
      checkCaptureId(table, captureId);
      const path = capturePath(table, captureId);
      if (written.some((file) => file.path === path)) throw new Error(`${path} is saved already`);
      await mkdir(join(folder, 'tables', table), { recursive: true });
      return { table, capture_id: captureId, path };
    },
    addWhen(complete, file) {
      const added = (async () => {
        written.push({ ...file, ...(await complete) });
      })();
      // An unhandled rejection must not end the process before `finish` awaits it.
      added.catch(() => {});
      pending.push(added);
    },
    async finish() {
      await Promise.all(pending.splice(0));
    },
    rowsOf(table, captureIds) {
      const paths = written
        .filter((file) => file.table === table && file.rows > 0 && captureIds.includes(file.capture_id))
        .map(({ path }) => quote(join(folder, path)));
      return paths.length === 0 ? null : `read_parquet([${paths.join(', ')}])`;
    },
  };
}
