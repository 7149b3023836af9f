import { type ImportedSession, importSession } from '../session/archive-import.js';
import { findParquetDamage } from '../session/parquet-damage.js';
import { warn } from './output.js';

/** Imports a file of `session export`; warns if its name is taken. */
export async function importArchive(path: string): Promise<ImportedSession> {
  const imported = await importSession(path, undefined, findParquetDamage);
  if (imported.droppedName)
    warn(`another session is named ${imported.droppedName}: ${imported.id} was imported without its name`);
  return imported;
}
