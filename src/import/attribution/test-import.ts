import { homeFolders } from '../../session/home.js';
import { createSession } from '../../session/create.js';
import { openSession } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { summary } from '../../session/test-session.js';
import { testFolder } from '../../session/test-folder.js';
import type { Issue } from '../../model/document.js';
import type { ImportTarget } from '../../model/workbench.js';
import type { ImportContext, ImportOutcome } from '../importer.js';

const testContext: ImportContext = {
  execution_id: 'e',
  capture_id: 'c',
  host: 'h',
  zero: { realtime_ns: null, monotonic_ns: null },
};

export interface Imported {
  database: SessionDatabase;
  issues: Issue[];
}

/** A session with the result of `load` for a capture. */
export async function importWith(
  load: (target: ImportTarget, context: ImportContext) => Promise<Pick<ImportOutcome, 'issues'>>,
): Promise<Imported> {
  const folder = testFolder();
  const home = homeFolders({ INFERSCOPE_HOME: `${folder}/home` });
  const session = await createSession({ kind: 'import', label: 'test', home });
  const target = { sink: session.sink, workbench: session.workbench, scratch: folder };
  const { issues } = await load(target, testContext);
  const { id } = await session.finish(summary);
  return { database: await (await openSession(id, home)).connect(), issues };
}
