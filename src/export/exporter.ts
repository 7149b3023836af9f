import type { Session } from '../session/open.js';
import type { SessionDatabase } from '../session/query.js';

/** What was changed or left out on the way, for stderr. */
export type Note = (text: string) => void;

/** One output format: the text of a whole session in pieces, none of them large. */
export type TextExport = (
  session: Pick<Session, 'id' | 'manifest' | 'toolVersion'>,
  database: SessionDatabase,
  note: Note,
) => AsyncGenerator<string>;

/** Joins small pieces to chunks worth a system call. */
export async function* inChunks(pieces: AsyncIterable<string>, chunkChars = 65_536): AsyncGenerator<string> {
  let chunk = '';
  for await (const piece of pieces) {
    chunk += piece;
    if (chunk.length < chunkChars) continue;
    yield chunk;
    chunk = '';
  }
  if (chunk !== '') yield chunk;
}
