import { type ImportedSession, importSession } from '../session/archive-import.js';
import { parquetDamage } from '../session/parquet-damage.js';
import { warn } from './output.js';

/** Brings back what `session export` wrote, and warns when its name is taken. */
export async function importArchive(path: string): Promise<ImportedSession> {
  const imported = await importSession(path, undefined, parquetDamage);
  if (imported.droppedName)
    warn(`another session is called ${imported.droppedName}: ${imported.id} was imported without its name`);
  return imported;
}
