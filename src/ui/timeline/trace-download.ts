import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { chromeTrace } from '../../export/chrome-trace.js';
import { inChunks, type Note } from '../../export/exporter.js';
import { withExecution, restrictToExecution } from '../../export/one-execution.js';
import { safeJson } from '../../render/safe-text.js';
import type { Session } from '../../session/open.js';

/** One execution as a chrome trace for Perfetto, starting at time 0, compressed with gzip. */
export function traceDownload(session: Session, execution: string, note: Note): ReadableStream<Uint8Array> {
  const text = Readable.from(traceOf(withExecution(session, execution), execution, note));
  const packed = createGzip({ level: 1 });
  // A closed download stops the export; a failed export aborts the download.
  text.once('error', (error) => packed.destroy(error));
  packed.once('close', () => text.destroy());
  return Readable.toWeb(text.pipe(packed)) as ReadableStream<Uint8Array>;
}

async function* traceOf(session: Session, execution: string, note: Note): AsyncGenerator<string> {
  const database = await session.connect();
  try {
    await restrictToExecution(database, execution);
    for await (const chunk of inChunks(chromeTrace(session, database, note))) yield safeJson(chunk);
  } finally {
    await database.close();
  }
}
