import type { Session } from '../session/open.js';
import type { SessionDatabase } from '../session/query.js';

/** Reports what an export changed or left out, for stderr. */
export type Note = (text: string) => void;

/** An output format: the text of a whole session in small pieces. */
export type TextExport = (
  session: Pick<Session, 'id' | 'manifest' | 'toolVersion' | 'connect'>,
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
