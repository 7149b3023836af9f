import { unreadableFile } from '../trace-file-error.js';
import { interrupted } from '../interrupted.js';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { StringDecoder } from 'node:string_decoder';
import { createGunzip } from 'node:zlib';
import { messageOf } from '../../model/errors.js';

/** A verbose record of 64 channels has about 20 kB. */
const maxLineLength = 2 ** 20;

interface LogLine {
  /** null: longer than any record. */
  text: string | null;
  /** It ends with a line break, so it is complete. */
  isComplete: boolean;
}

/**
 * Lines of a log, plain or gzip. Lines over 1 MiB are not kept in memory.
 * @throws E_TRACE_FILE if a gzip file is damaged, E_INTERRUPTED on Ctrl-C
 */
export async function* readLogLines(path: string, signal?: AbortSignal): AsyncGenerator<LogLine> {
  const decoder = new StringDecoder('utf8');
  let partialLine: string | null = '';
  for await (const bytes of await openChunks(path)) {
    if (signal?.aborted) throw interrupted(`the import of ${path}`);
    const [first, ...more] = decoder.write(bytes).split('\n');
    partialLine = join(partialLine, first!);
    for (const next of more) {
      yield { text: partialLine, isComplete: true };
      partialLine = join('', next);
    }
  }
  if (partialLine !== '') yield { text: partialLine, isComplete: false };
}

const join = (before: string | null, next: string): string | null =>
  before === null || before.length + next.length > maxLineLength ? null : before + next;

async function openChunks(path: string): Promise<AsyncIterable<Buffer>> {
  const file = await open(path, 'r');
  const { buffer } = await file.read(Buffer.alloc(2), 0, 2, 0);
  await file.close();
  const source = createReadStream(path);
  if (buffer[0] !== 0x1f || buffer[1] !== 0x8b) return source;
  const inflated = createGunzip();
  source.on('error', (error) => inflated.destroy(error));
  return withReadErrors(source.pipe(inflated), path);
}

async function* withReadErrors(inflated: AsyncIterable<Buffer>, path: string): AsyncGenerator<Buffer> {
  try {
    yield* inflated;
  } catch (error) {
    throw unreadableFile(null, 'Copy it again from its source.')(
      path,
      `The gzip file is damaged: ${messageOf(error)}.`,
      error,
    );
  }
}
