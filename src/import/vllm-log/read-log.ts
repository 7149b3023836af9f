import { createReadStream } from 'node:fs';
import { InferscopeError, messageOf } from '../../model/errors.js';
import { cleaned, type LogLine } from './lines.js';

/** What a line needs to have for any pattern to look at it: logs of servers hold millions of other lines. */
const telling =
  /GiB?|GB |LLM engine|args: |Namespace\(|API server version|blocks: |blocks is: |tokens|block size|max model len|Error|utilization| seconds| secs|init engine/;

/**
 * The lines of a log that may tell something, and of all of them what a caller wants to see; nothing else is held.
 * @throws E_TRACE_FILE, E_INTERRUPTED
 */
export async function readLog(
  path: string,
  onLine: (line: LogLine) => void = () => {},
  signal?: AbortSignal,
): Promise<LogLine[]> {
  const kept: LogLine[] = [];
  let number = 0;
  let rest = '';
  const take = (text: string) => {
    number++;
    const line = { text: cleaned(text), number };
    onLine(line);
    if (telling.test(line.text)) kept.push(line);
  };
  try {
    for await (const chunk of createReadStream(path, { encoding: 'utf8', ...(signal ? { signal } : {}) })) {
      const parts = (rest + String(chunk)).split(/\r\n|\n|\r(?!$)/);
      rest = parts.pop()!;
      for (const part of parts) take(part);
    }
  } catch (error) {
    if (signal?.aborted) {
      throw new InferscopeError('E_INTERRUPTED', {
        what: `the import of ${path} was interrupted`,
        why: 'Ctrl-C was pressed.',
        fix: 'Run it again; nothing was kept of it.',
      });
    }
    throw new InferscopeError(
      'E_TRACE_FILE',
      { what: `cannot read ${path}`, why: messageOf(error), fix: 'Check the path and its permissions.' },
      { cause: error },
    );
  }
  if (rest !== '') take(rest);
  return kept;
}
