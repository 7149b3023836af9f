import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { InferscopeError } from '../model/errors.js';

/** E_INTERRUPTED of an import that a signal stopped. */
export const interrupted = (what = 'the import'): InferscopeError =>
  new InferscopeError('E_INTERRUPTED', {
    what: `${what} was interrupted`,
    why: 'Ctrl-C or a signal stopped it.',
    fix: 'Run it again; nothing was imported.',
  });

/** Lines of a text file. @throws E_INTERRUPTED once the signal is aborted */
export async function* readLines(
  path: string,
  signal?: AbortSignal,
  input: NodeJS.ReadableStream = createReadStream(path, 'utf8'),
): AsyncGenerator<string> {
  for await (const line of createInterface({ input, crlfDelay: Infinity })) {
    if (signal?.aborted) throw interrupted(`the import of ${path}`);
    yield line;
  }
}
