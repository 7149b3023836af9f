import { constants } from 'node:fs';
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { tables, type TableName } from '../model/tables.js';
import { sessionTables, type Session } from '../session/open.js';

/**
 * Copies a session's Parquet files unchanged to `folder/<table>/<capture_id>.parquet`, and writes `SCHEMA.md` with the meaning of every
 * column. Nothing else of the session (manifest, logs, raw reports) is copied.
 * @param folder an existing empty folder
 * @returns paths relative to the folder
 */
export async function copyTables(
  session: Pick<Session, 'id' | 'folder' | 'manifest'>,
  folder: string,
): Promise<string[]> {
  const written: string[] = [];
  for (const [table, files] of Object.entries(sessionTables(session).files)) {
    await mkdir(join(folder, table), { recursive: true });
    for (const file of files) {
      const path = join(table, basename(file));
      await copyFile(file, join(folder, path), constants.COPYFILE_FICLONE);
      written.push(path);
    }
  }
  const tableNames = Object.keys(session.manifest.tables) as TableName[];
  await writeFile(join(folder, 'SCHEMA.md'), schemaNote(session.id, tableNames));
  return [...written, 'SCHEMA.md'];
}

/** The columns of these tables in Markdown, and how to read several files as one. */
function schemaNote(id: string, tableNames: TableName[]): string {
  const parts = tableNames.flatMap((table) => [
    `## ${table}\n\n${tables[table].doc}\n`,
    '| column | type | meaning |\n| --- | --- | --- |',
    ...Object.entries(tables[table].columns).map(
      ([name, { type, doc }]) => `| ${name} | ${type} | ${doc.replaceAll('|', '\\|')} |`,
    ),
    '',
  ]);
  return `# Tables of session ${id}

One file per table and capture: \`SELECT * FROM read_parquet('kernels/*.parquet', union_by_name = true)\`. A column that a
file lacks is null there. Times are ns since the session's start; no query should sum over \`execution_id\`.

${parts.join('\n')}`;
}
