import type { Session } from '../../session/open.js';

/** Ranks with kernels in a session; a trace of PyTorch is of one process. */
export async function processesOf(session: Session): Promise<number> {
  if (session.manifest.captures.every(({ importer }) => importer === 'kineto')) return 1;
  const database = await session.connect();
  const [row] = await database.query<{ n: number }>('SELECT count(DISTINCT rank) AS n FROM kernels');
  await database.close();
  return Math.max(1, row?.n ?? 1);
}
